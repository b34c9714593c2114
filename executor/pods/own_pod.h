#pragma once

#include <stop_token>
#include <string>
#include <utility>

#include "k8s/api_client.h"

namespace sluice::executor {

// The pod in which this process runs. Thread-safe.
class OwnPod {
 public:
  OwnPod(k8s::ApiClient& client, std::string namespace_name, std::string name)
      : client_(client), namespace_(std::move(namespace_name)), name_(std::move(name)) {}

  // Whether it is being deleted, as the API server says within a second.
  bool Goes() const;
  // False: it could not be deleted.
  bool Delete(const std::stop_token& stop) const;

 private:
  k8s::ApiClient& client_;
  const std::string namespace_, name_;
};

}  // namespace sluice::executor
