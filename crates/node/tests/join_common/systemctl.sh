U=$R/units; mkdir -p $U
[ ! -e $R/systemctl-hangs ] || . $R/systemctl-hangs
case $1 in
  is-enabled) state=$(cat $U/$2.enabled 2>/dev/null || echo disabled); echo $state; [ $state = enabled ] ;;
  enable) echo enabled >$U/$2.enabled ;;
  mask) [ -e $R/no-mask ] || echo masked >$U/$2.enabled ;;
  unmask) echo disabled >$U/$2.enabled ;;
  stop) rm -f $U/$2.active ;;
  start | restart) echo active >$U/$2.active; [ ! -e $R/$2.fails ] || echo activating >$U/$2.active ;;
  show)
    shift 3
    for unit in "$@"; do
      printf 'Id=%s\nLoadState=loaded\nActiveState=%s\nResult=success\nNRestarts=0\n\n' $unit $(cat $U/$unit.active 2>/dev/null || echo inactive)
    done ;;
esac
