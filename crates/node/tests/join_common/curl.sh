while [ $# -gt 0 ]; do [ "$1" = --output ] && out=$2; shift; done
url=$(sed -n 's/^url = "\(.*\)"$/\1/p')
echo "url ${url%%\?*}" >>$R/calls
name=${url##*/}; name=${name%%\?*}
if [ -e $R/curl/$name ]; then . $R/curl/$name; fi
if [ "$name" = cluster-info ]; then printf 200; exit 0; fi
cp $R/served/$name $out && printf '200 0.01 application/octet-stream'
