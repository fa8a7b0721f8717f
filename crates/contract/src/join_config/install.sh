set -u
umask 077
root=
agent=$root/usr/local/bin/bringup-node
part=$root/var/lib/bringup-node/agent.part
sentinels=$root/run/cluster-api
pause=5

# A cause, and a sentence of our own: nothing that would have to be escaped.
fail() {
  rm -f "$part"
  mkdir -p "$sentinels"
  rm -f "$sentinels/bootstrap-success.complete"
  printf '{"code":%s,"name":"%s","cause":"%s","message":"%s"}\n' "$code" "$name" "$1" "$2" \
    >"$sentinels/.bootstrap-failed.json.new"
  mv -f "$sentinels/.bootstrap-failed.json.new" "$sentinels/bootstrap-failed.json"
  line=$(printf 'BRINGUP-NODE/1 {"v":1,"kind":"join","exit":%s,"name":"%s","cause":"%s","conf":"high","step":"agent","ev":["%s"],"end":1}' \
    "$code" "$name" "$1" "$2")
  { printf '\n%s\n' "$line" >"$root/dev/console"; } 2>/dev/null || true
  printf '%s\n' "$line" >&2
  exit "$code"
}

is_right() {
  [ "$(sha256sum "$1" 2>/dev/null | cut -d ' ' -f 1)" = "$sha256" ]
}

looks_like_a_page() {
  case $1 in text/html*) return 0 ;; esac
  head -c 512 "$part" | tr 'A-Z' 'a-z' | grep -q -e '<html' -e '<!doctype'
}

# One attempt. 0: it is there. 1: it may work later. Else it does not come back.
fetch() {
  # By the standard input: the address may carry a signature, and others can read arguments.
  said=$(printf 'url = "%s"\n' "$url" | curl --silent --location --connect-timeout 10 --max-time 180 \
    --output "$part" --write-out '%{http_code} %{content_type}' --config - 2>/dev/null)
  ended=$?
  status=${said%% *}
  type=${said#* }
  case $ended in
    0) ;;
    5 | 97) cause=ProxyMisconfigured why="the proxy for the agent cannot be used (curl $ended)"; return 1 ;;
    6) cause=DnsFailure why="the host of the agent does not resolve (curl 6)"; return 1 ;;
    7 | 28) cause=EgressBlocked why="the host of the agent is not reachable (curl $ended)"; return 1 ;;
    23) fail DiskFull "the agent could not be written (curl 23)" ;;
    35 | 51 | 58 | 60 | 77) cause=TlsTrustFailure why="the host of the agent is not trusted (curl $ended)"; return 1 ;;
    *) cause=DownloadInterrupted why="the download of the agent broke off (curl $ended)"; return 1 ;;
  esac
  case $status in
    200) ;;
    404 | 410) fail ArtifactMissing "the agent is not there (HTTP $status)" ;;
    401 | 403) fail EgressBlocked "the agent is refused (HTTP $status)" ;;
    407) fail ProxyMisconfigured "the proxy wants credentials (HTTP 407)" ;;
    *) cause=DownloadInterrupted why="the host of the agent answers HTTP $status"; return 1 ;;
  esac
  is_right "$part" && return 0
  looks_like_a_page "$type" && fail ProxyMisconfigured "a web page came instead of the agent"
  cause=DownloadInterrupted why="the agent has another checksum"
  return 1
}

install_agent() {
  is_right "$agent" && return
  command -v curl >/dev/null || fail BinaryMissing "curl is not in the image"
  mkdir -p "${agent%/*}" "${part%/*}"
  try=1
  until fetch; do
    [ "$try" -ge 5 ] && fail "$cause" "$why"
    try=$((try + 1))
    sleep "$pause"
  done
  chmod 0755 "$part" && mv -f "$part" "$agent" || fail DiskFull "the agent could not be put in its place"
}

rm -f "$sentinels/bootstrap-failed.json"
install_agent
# It says itself what comes of it.
exec "$agent" join --config "$config"
