#!/bin/bash
# The boot inside the machine: the part of cloud-init, the part of systemd if any, then the part of the
# guest agent.

# On newer images cloud-init extracts the boothook from the CustomData, drops the line that names the
# kind, and runs the rest, which starts the launcher.
boothook() {
  sed -n '/^Content-Type: text\/cloud-boothook/,/^--bringup-/p' /boot/custom-data |
    sed '1,/^$/d; /^--bringup-/d; /^#cloud-boothook$/d' >/boot/boothook
  chmod 0700 /boot/boothook
  /boot/boothook >/var/log/boothook.log 2>&1
}

# On older images cloud-init writes the files, and then systemd starts the enabled unit.
cloud_config() {
  local path
  path=$(sed -n 's/^- path: //p' /boot/custom-data)
  mkdir -p "$(dirname "$path")"
  sed -n '/!!binary/,$p' /boot/custom-data | sed 1d | base64 -d -i >"$path"
  chmod 0755 "$path"
  local command
  command=$(sed -n 's/^ExecStart=//p' /etc/systemd/system/aks-node-controller.service)
  $command >/var/log/unit.log 2>&1 &
}

case "$(head -n 1 /boot/custom-data)" in
  '#cloud-config') cloud_config || exit 98 ;;
  *) boothook || exit 98 ;;
esac
bash -c "$(cat /boot/command)"
