#!/bin/bash
# The first boot of a plain VM, up to the end of its join: cloud-init writes the files of the CustomData
# and runs the script among them. The machine is a folder; its programs are stubs, except curl, tar and
# the agent.
#
#   join.sh IMAGE MACHINES [FLAW]
#
# IMAGE is the folder with the image's files, MACHINES the folder of all machines, FLAW a file that spoils
# the image. The machine has its own processes, which end with the machine. The machine ends with the
# process that started it.
set -euo pipefail

if [ "${1:-}" != inside ]; then
  exec setpriv --pdeathsig KILL unshare --user --map-root-user --pid --fork --kill-child \
    bash "$0" inside "$@"
fi
shift

image=$1
machines=$2
flaw=${3:-}
name=${BRINGUP_SIM_VM##*/}
root=$machines/$name

# An earlier machine of the same name had another disk.
rm -rf "$root"
mkdir "$root"
cp -a "$image/." "$root"
mkdir "$root/var" "$root/var/log"
if [ -n "$flaw" ]; then
  echo 'as the image was built' >"$root/$flaw"
fi

path=
mode=
while IFS= read -r line; do
  case $line in
    '- path: '*) path=$root${line#- path: } ;;
    '  permissions: '*) mode=${line#*\"} mode=${mode%\"*} ;;
    '  content: '*)
      mkdir -p "${path%/*}"
      base64 -d <<<"${line#*content: }" >"$path"
      chmod "$mode" "$path"
      ;;
  esac
done < <(base64 -d <<<"$BRINGUP_SIM_CUSTOM_DATA")

code=0
for script in "$root"/var/lib/cloud/scripts/per-boot/*; do
  # The root folder is the only setting that the script cannot know.
  sed -i "s|^root=\$|root='$root'|" "$script"
  env -i PATH=/usr/bin:/bin HOME=/root "$script" >"$root/var/log/cloud-init-output.log" 2>&1 || code=$?
done
# The content of this file is the output on the serial console.
cat "$root/dev/console"
exit "$code"
