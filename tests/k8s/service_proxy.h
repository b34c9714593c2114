#pragma once

#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>

namespace sluice::k8s {

// What kube-proxy does for one port of a Service: connects clients to the pod that `target` names
// at that moment ("": to none). A connection lasts as long as both of its ends.
class ServiceProxy {
 public:
  ServiceProxy(const std::string& address, int port, std::function<std::string()> target);
  ~ServiceProxy();

 private:
  struct Pair {
    int client = -1, pod = -1;
    std::jthread thread;
  };
  void Accept();
  void Carry(int client, int pod);

  const int port_;
  const std::function<std::string()> target_;
  int listener_ = -1;
  std::mutex mutex_;
  bool stopping_ = false;
  std::list<Pair> pairs_;
  std::jthread accepting_;
};

}  // namespace sluice::k8s
