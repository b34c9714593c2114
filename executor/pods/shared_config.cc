#include "executor/pods/shared_config.h"

#include <fmt/core.h>

#include <charconv>
#include <system_error>

#include "elastic/job/process.pb.h"

namespace sluice::executor {

Result<std::string> SharedConfig(const elastic::ProcessSpec& process) {
  elastic::ProcessConfig config;
  if (!config.ParseFromString(process.config)) {
    return Internal(fmt::format("the configuration of {} is damaged", process.name));
  }
  config.clear_name();
  config.clear_incarnation();
  config.clear_server_id();
  return config.SerializeAsString();
}

Result<std::string> ConfigIn(const PodPlace& place, elastic::Role role, const std::string& shared) {
  uint64_t number = 0;
  const char* const end = place.number.data() + place.number.size();
  const auto [read, error] = std::from_chars(place.number.data(), end, number);
  elastic::ProcessConfig config;
  if (error != std::errc() || read != end || !config.ParseFromString(shared)) {
    return Internal(fmt::format("the configuration of {} is damaged", place.name));
  }
  config.set_name(place.name);
  if (role == elastic::Role::kWorker) {
    config.set_incarnation(number);
  } else {
    config.set_server_id(static_cast<uint32_t>(number));
  }
  config.set_listen_host(place.address);
  config.set_node(place.node);
  return config.SerializeAsString();
}

}  // namespace sluice::executor
