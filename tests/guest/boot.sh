#!/bin/bash
# Boots a machine from a folder, with its own root, processes, name and network, which all end with the
# machine. The script runs the boothook of the CustomData as cloud-init does, then the extension's command
# as the guest agent does. It needs no privileges: the machine's root is the user who started it.
set -euo pipefail

inside() {
  cd "$1"
  mount --rbind /usr usr
  # Hides everything that the host has installed in /usr/local.
  mount -t tmpfs -o mode=0755 tmpfs usr/local
  cp -r local/. usr/local/
  mount -t proc proc proc
  mount -t tmpfs -o mode=0755 tmpfs run
  if [ -e var-size ]; then
    mount -t tmpfs -o "mode=0755,size=$(cat var-size)" tmpfs var
    mkdir -p var/log/azure/aks var/lib/dpkg
  fi
  for device in null zero random urandom; do
    touch "dev/$device"
    mount --bind "/dev/$device" "dev/$device"
  done
  touch dev/console
  hostname "$(cat etc/hostname)"
  exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
    chroot . /bin/bash /boot/guest.sh
}

if [ "${2:-}" = inside ]; then
  inside "$1"
fi
machine=$1
base64 -d <<<"$BRINGUP_SIM_CUSTOM_DATA" >"$machine/boot/custom-data"
printf '%s' "$BRINGUP_SIM_COMMAND" >"$machine/boot/command"
exec unshare --user --map-root-user --mount --pid --uts --net --ipc --fork --kill-child \
  bash "$0" "$machine" inside
