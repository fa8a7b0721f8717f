[ ! -e $R/no-modules ] || { echo 'sysctl: cannot stat /proc/sys/net/bridge/bridge-nf-call-iptables: No such file or directory' >&2; exit 255; }
while read -r name _ value; do
  path=$R/proc/sys/${name//.//}; mkdir -p ${path%/*}; echo $value >$path
done <$2
