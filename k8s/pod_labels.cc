#include "k8s/pod_labels.h"

#include <charconv>

namespace sluice::k8s {
namespace {

using elastic::Role;

template <typename Number>
bool ReadNumber(const std::map<std::string, std::string>& labels, std::string_view label,
                Number& number) {
  const auto found = labels.find(std::string(label));
  if (found == labels.end()) {
    return false;
  }
  const char* const end = found->second.data() + found->second.size();
  const auto read = std::from_chars(found->second.data(), end, number);
  return read.ec == std::errc() && read.ptr == end;
}

}  // namespace

std::map<std::string, std::string> LabelsOf(const PodIdentity& identity) {
  std::map<std::string, std::string> labels = {
      {std::string(kJobLabel), identity.job_uid},
      {std::string(kRoleLabel), std::string(RoleName(identity.role))},
      {std::string(kIncarnationLabel), std::to_string(identity.incarnation.value())}};
  if (identity.role == Role::kParameterServer) {
    labels[std::string(kServerLabel)] = std::to_string(identity.server_index.value());
  }
  return labels;
}

std::string JobUidOf(const Object& training_job) {
  const auto label = training_job.labels.find(std::string(kJobLabel));
  return label == training_job.labels.end() ? training_job.uid : label->second;
}

std::optional<PodIdentity> IdentityOf(const std::map<std::string, std::string>& labels) {
  const auto job = labels.find(std::string(kJobLabel));
  const auto role = labels.find(std::string(kRoleLabel));
  PodIdentity identity;
  uint64_t incarnation = 0;
  if (job == labels.end() || role == labels.end() ||
      !ReadNumber(labels, kIncarnationLabel, incarnation)) {
    return std::nullopt;
  }
  identity.job_uid = job->second;
  identity.incarnation = elastic::Incarnation(incarnation);
  for (const Role each : {Role::kMaster, Role::kWorker, Role::kParameterServer}) {
    if (role->second == RoleName(each)) {
      identity.role = each;
      uint32_t server = 0;
      if (each == Role::kParameterServer && !ReadNumber(labels, kServerLabel, server)) {
        return std::nullopt;
      }
      identity.server_index = elastic::ServerId(server);
      return identity;
    }
  }
  return std::nullopt;
}

}  // namespace sluice::k8s
