# What kubeadm and kubelet do with the token: they show it to the API server, whose certificate the
# authority must have signed, and ask for a certificate of their own. The stub asks whether it might.
folder=${3%/*}
server=$(sed -n 's/.*"server":"\([^"]*\)".*/\1/p' $folder/discovery.json)
token=$(sed -n 's/.*"token":"\([^"]*\)".*/\1/p' $folder/discovery.json)
review='{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":{"group":"certificates.k8s.io","resource":"certificatesigningrequests","verb":"create"}}}'
answer=$(printf 'header = "Authorization: Bearer %s"\n' "$token" |
  /usr/bin/curl --silent --show-error --max-time 20 --noproxy '*' --cacert $folder/ca.crt --config - \
    --header 'Content-Type: application/json' --data "$review" --write-out '\n%{http_code}' \
    "$server/apis/authorization.k8s.io/v1/selfsubjectaccessreviews") || {
  echo 'error execution phase preflight: couldn'\''t validate the identity of the API Server' >&2
  exit 1
}
case $answer in
  # Spaces are for curl, which is taken for a person.
  *'"allowed": true'*201 | *'"allowed":true'*201) ;;
  *401) echo 'error execution phase preflight: Unauthorized' >&2; exit 1 ;;
  *) echo "error execution phase kubelet-start: forbidden: ${answer##*$'\n'}" >&2; exit 1 ;;
esac
