# Stands in for kubeadm and kubelet. They show the token to the API server, whose certificate the
# authority must have signed, and request a certificate of their own. This stub only checks whether the
# token would allow that request.
folder=${3%/*}
server=$(sed -n 's/.*"server":"\([^"]*\)".*/\1/p' $folder/discovery.json)
token=$(sed -n 's/.*"token":"\([^"]*\)".*/\1/p' $folder/discovery.json)
review='{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":{"group":"certificates.k8s.io","resource":"certificatesigningrequests","verb":"create"}}}'

# Prints the body of the response, and then its status.
ask() {
  printf 'header = "Authorization: Bearer %s"\n' "$token" |
    /usr/bin/curl --silent --max-time 20 --noproxy '*' --cacert $folder/ca.crt --config - \
      --write-out '\n%{http_code}' "$@"
}

# The API server refuses a request with a body before it reads the body, and then the response may be
# lost.
case $(ask --output /dev/null "$server/api") in
  *200) ;;
  *401) echo 'error execution phase preflight: Unauthorized' >&2; exit 1 ;;
  *) echo 'error execution phase preflight: couldn'\''t validate the identity of the API Server' >&2; exit 1 ;;
esac
answer=$(ask --header 'Content-Type: application/json' --data "$review" \
  "$server/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
case $answer in
  # The API server adds the spaces for curl, which it treats as a human user.
  *'"allowed": true'*201 | *'"allowed":true'*201) ;;
  *) echo "error execution phase kubelet-start: forbidden: ${answer##*$'\n'}" >&2; exit 1 ;;
esac
