#!/usr/bin/env bash
# node.sh I: the first process of node I, in the network, mount, process and host name spaces that
# scripts/kubernetes has made for it. It ends when it is killed, and everything in it with it.
# Its environment: work (the cluster's folder), node (the node's folder), bin, address, and report
# (seconds between a kubelet's reports).
set -eu
hostname "node$1"
# What every kubelet would share.
mkdir -p /var/lib/kubelet /var/log/pods /var/log/containers
mount -t tmpfs none /run/netns
mount --bind "$node/lib" /var/lib/kubelet
mount --bind "$node/pods" /var/log/pods
mount --bind "$node/containers" /var/log/containers
mount --make-rshared /

cat >"$node/containerd.toml" <<CONFIG
version = 2
root = "$node/images"
state = "$node/state"
oom_score = 0
[grpc]
  address = "$node/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "sluice.test/tools:1"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$node/net.d"
CONFIG
cat >"$node/net.d/bridge.conflist" <<CONFIG
{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "pods", "isGateway": true, "hairpinMode": true,
   "ipam": {"type": "host-local", "dataDir": "$node/addresses", "routes": [{"dst": "0.0.0.0/0"}],
            "ranges": [[{"subnet": "10.244.$1.0/24"}]]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
CONFIG
# 1.20's defaults suit machines of which nothing is shared: cgroups are the node's own, nothing is
# evicted for the host's full disk, and 30 pods begin together.
cat >"$node/kubelet.yaml" <<CONFIG
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: "$work/ca.crt"}}
authorization: {mode: Webhook}
tlsCertFile: "$work/node$1.crt"
tlsPrivateKeyFile: "$work/node$1.key"
cgroupDriver: cgroupfs
cgroupRoot: /sluice-node$1
failSwapOn: false
oomScoreAdj: 0
maxOpenFiles: 20000
clusterDomain: cluster.local
clusterDNS: [10.96.0.10]
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}
nodeStatusUpdateFrequency: 2s
nodeStatusReportFrequency: ${report}s
kubeAPIQPS: 200
kubeAPIBurst: 400
eventRecordQPS: 0
CONFIG

containerd -c "$node/containerd.toml" >"$node/containerd.log" 2>&1 &
ask() { ctr -a "$node/containerd.sock" -n k8s.io "$@"; }
for _ in $(seq 300); do
  ask version >/dev/null 2>&1 && break
  sleep 0.1
done
for image in "$work"/images/*.tar; do
  ask images import "$image"
done
AWS_EC2_METADATA_DISABLED=true "$bin/kubelet" --kubeconfig="$work/node$1.conf" \
  --config="$node/kubelet.yaml" --root-dir="$node/kubelet" --cert-dir="$node" \
  --container-runtime=remote --container-runtime-endpoint="unix://$node/containerd.sock" \
  --node-ip="$address" --hostname-override="node$1" >"$node/kubelet.log" 2>&1 &
"$bin/kube-proxy" --kubeconfig="$work/proxy.conf" --proxy-mode=iptables --hostname-override="node$1" \
  --cluster-cidr=10.244.0.0/16 --conntrack-max-per-core=0 --conntrack-tcp-timeout-established=0 \
  --conntrack-tcp-timeout-close-wait=0 --bind-address="$address" >"$node/proxy.log" 2>&1 &
set +e
while :; do  # as the first process must: reaps orphaned children
  wait -n
  [ $? -ne 127 ] || sleep 1
done
