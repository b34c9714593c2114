# Sourced by with_api_server and by scripts/kubernetes: a Kubernetes control plane in the folder $work.
# Expects: bin (the folder of the programs), work, address (of the API server), secure, client, peer
# (ports), and inside (an array: what a command is started with, in its network; may be empty).

# The authority, then everybody's certificate; EC keys are made at once.
make_authorities() {
  cd "$work"
  local each
  for each in ca other-ca; do
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$each.key" \
      -out "$each.crt" -subj "/CN=$each" -days 30 2>/dev/null
  done
  openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:prime256v1 -out sa.key 2>/dev/null
  openssl pkey -in sa.key -pubout -out sa.pub
  make_certificate server /CN=kube-apiserver
  make_certificate admin /O=system:masters/CN=admin
  cd "$OLDPWD"
}
make_certificate() { # name, subject, [its address]
  (cd "$work"
   openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$1.key" -out "$1.csr" \
     -subj "$2" 2>/dev/null
   printf 'subjectAltName=IP:%s,IP:10.96.0.1,DNS:kubernetes,DNS:kubernetes.default.svc\n' \
     "${3:-$address}" >"$1.ext"
   openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -out "$1.crt" -days 30 \
     -extfile "$1.ext" 2>/dev/null)
}
# make_login NAME SUBJECT [ADDRESS]: a certificate and its kubeconfig, $work/NAME.conf.
make_login() {
  make_certificate "$@"
  cat >"$work/$1.conf" <<CONFIG
apiVersion: v1
kind: Config
current-context: $1
clusters: [{name: c, cluster: {server: "https://$address:$secure", certificate-authority: "$work/ca.crt"}}]
users: [{name: $1, user: {client-certificate: "$work/$1.crt", client-key: "$work/$1.key"}}]
contexts: [{name: $1, context: {cluster: c, user: $1}}]
CONFIG
}

# What the contract tests log in as: tests/k8s/tested_api_server.h.
write_kubeconfig() {
  printf 'admin,admin,1,"system:masters"\npowerless,powerless,2\n' >"$work/tokens.csv"
  cat >"$work/kubeconfig" <<CONFIG
apiVersion: v1
kind: Config
current-context: certificate
clusters:
- {name: c, cluster: {server: "https://$address:$secure", certificate-authority: ca.crt}}
- {name: wrong, cluster: {server: "https://$address:$secure", certificate-authority: other-ca.crt}}
- {name: renamed, cluster: {server: "https://$address:$secure", certificate-authority: ca.crt, tls-server-name: elsewhere.example}}
- {name: named, cluster: {server: "https://$address:$secure", certificate-authority: ca.crt, tls-server-name: kubernetes}}
users:
- {name: certificate, user: {client-certificate: admin.crt, client-key: admin.key}}
- {name: token, user: {token: admin}}
- {name: powerless, user: {token: powerless}}
- {name: stranger, user: {token: stranger}}
contexts:
- {name: certificate, context: {cluster: c, user: certificate}}
- {name: token, context: {cluster: c, user: token}}
- {name: powerless, context: {cluster: c, user: powerless}}
- {name: stranger, context: {cluster: c, user: stranger}}
- {name: wrong-ca, context: {cluster: wrong, user: token}}
- {name: wrong-name, context: {cluster: renamed, user: token}}
- {name: other-name, context: {cluster: named, user: token}}
CONFIG
  # Forgets what happened in the store.
  cat >"$work/compact" <<COMPACT
#!/bin/sh
ask() { ${inside[*]} curl -sf "http://127.0.0.1:$client/v3/kv/\$1" -d "\$2"; }
revision=\$(ask range '{"key":"AA=="}' | sed -n 's/.*"revision":"\([0-9]*\)".*/\1/p')
ask compaction "{\"revision\":\"\$revision\",\"physical\":true}" >/dev/null
COMPACT
  chmod +x "$work/compact"
}

# in_favour COMMAND... &: in a session of its own that weighs ten others (autogroup), where the kernel knows sessions and
# we may say it. $! is the command itself. A cluster beside the dozens of sessions of other tests otherwise takes half a minute to start a pod.
in_favour() { exec setsid bash -c '{ echo -10 >/proc/self/autogroup; } 2>/dev/null; exec "$@"' bash "$@"; }
# begin NAME COMMAND...: in the background, with $work/NAME.log and $work/NAME.pid.
begin() {
  local name=$1
  shift
  in_favour "${inside[@]}" "$@" >"$work/$name.log" 2>&1 </dev/null &
  echo $! >"$work/$name.pid"
}
# No thread of that process runs any more: its ports are free. Somebody else may have to reap it.
ended() { # pid
  local states
  states=$(sed 's/.*) //; s/ .*//' /proc/"$1"/task/*/stat 2>/dev/null | tr -d '\n')
  [ -z "${states//[ZX]/}" ]
}
end() { # name
  local pid
  pid=$(cat "$work/$1.pid" 2>/dev/null) || return 0
  kill -9 "$pid" 2>/dev/null || true
  wait "$pid" 2>/dev/null || true
  for _ in $(seq 600); do
    ! ended "$pid" || break
    sleep 0.05
  done
  rm -f "$work/$1.pid"
}

begin_etcd() {
  begin etcd etcd --data-dir "$work/etcd" --unsafe-no-fsync \
    --listen-client-urls "http://127.0.0.1:$client" --advertise-client-urls "http://127.0.0.1:$client" \
    --listen-peer-urls "http://127.0.0.1:$peer" --initial-advertise-peer-urls "http://127.0.0.1:$peer" \
    --initial-cluster "default=http://127.0.0.1:$peer"
}
# Watches of ConfigMaps are the store's own, so that its forgetting is seen.
begin_api_server() { # [further options]
  begin apiserver "$bin/kube-apiserver" --etcd-servers="http://127.0.0.1:$client" \
    --bind-address="$address" --secure-port="$secure" --insecure-port=0 \
    --tls-cert-file="$work/server.crt" --tls-private-key-file="$work/server.key" \
    --client-ca-file="$work/ca.crt" --token-auth-file="$work/tokens.csv" --authorization-mode=Node,RBAC \
    --kubelet-client-certificate="$work/admin.crt" --kubelet-client-key="$work/admin.key" \
    --kubelet-preferred-address-types=InternalIP \
    --service-account-key-file="$work/sa.pub" --service-account-signing-key-file="$work/sa.key" \
    --service-account-issuer=https://kubernetes.default.svc --service-cluster-ip-range=10.96.0.0/16 \
    --watch-cache-sizes=configmaps#0 --allow-privileged=true "$@"
}
ask_api_server() { # path
  "${inside[@]}" curl -sf --cacert "$work/ca.crt" --cert "$work/admin.crt" --key "$work/admin.key" \
    "https://$address:$secure$1"
}
# Until COMMAND succeeds, at most a minute; fails at once when the program NAME has ended.
wait_for() { # name, command...
  local name=$1
  shift
  for _ in $(seq 600); do
    "$@" >/dev/null 2>&1 && return 0
    kill -0 "$(cat "$work/$name.pid")" 2>/dev/null || break
    sleep 0.1
  done
  tail -20 "$work/$name.log" >&2
  return 1
}
# Service accounts, garbage collection, quotas, eviction; and who places pods. $1: after how many
# seconds of silence a node is lost.
begin_controllers() {
  make_login controllers /O=system:kube-controller-manager/CN=system:kube-controller-manager
  make_login scheduler /O=system:kube-scheduler/CN=system:kube-scheduler
  local common=(--leader-elect=false --kube-api-qps=200 --kube-api-burst=400 --port=0 --secure-port=0)
  begin controllers "$bin/kube-controller-manager" --kubeconfig="$work/controllers.conf" \
    --root-ca-file="$work/ca.crt" --service-account-private-key-file="$work/sa.key" \
    --use-service-account-credentials --node-monitor-period=1s --node-monitor-grace-period="$1s" \
    --pod-eviction-timeout=10s "${common[@]}"
  begin scheduler "$bin/kube-scheduler" --kubeconfig="$work/scheduler.conf" "${common[@]}"
}
