table=$3
case $4 in
  -S) cat $R/rules/$table ;;
  -F | -X) [ -e $R/no-flush ] || { grep '^-P' $R/rules/$table >$R/rules/$table.new; mv $R/rules/$table.new $R/rules/$table; } ;;
  -P) [ -e $R/no-flush ] || { sed "s/^-P $5 .*/-P $5 $6/" $R/rules/$table >$R/rules/$table.new; mv $R/rules/$table.new $R/rules/$table; } ;;
esac
true
