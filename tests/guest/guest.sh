#!/bin/bash
# What happens inside: cloud-init's part, then the guest agent's.
# cloud-init takes the part of its kind out of the CustomData, drops the line that names the kind,
# and runs the rest.
sed -n '/^Content-Type: text\/cloud-boothook/,/^--bringup-/p' /boot/custom-data |
  sed '1,/^$/d; /^--bringup-/d; /^#cloud-boothook$/d' >/boot/boothook
chmod 0700 /boot/boothook
/boot/boothook >/var/log/boothook.log 2>&1 || exit 98
bash -c "$(cat /boot/command)"
