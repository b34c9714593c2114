#include "k8s/shared_secrets.h"

#include <utility>
#include <vector>

namespace sluice::k8s {
namespace {

constexpr double kTrustSeconds = 10;

}  // namespace

Result<std::string> SharedSecrets::Build(const PodShape& shape, PodIdentity identity,
                                         const elastic::ProcessSpec& process) {
  identity.incarnation = elastic::kNoIncarnation;
  identity.server_index = elastic::ServerId::First();
  return BuildSecret(shape, identity, process, SecretName(process));
}

std::map<std::string, ObjectAnswer> SharedSecrets::Create(
    ApiClient& client, const std::string& namespace_name,
    const std::map<std::string, std::string>& secrets, const std::stop_token& stop) {
  const TimePoint now = client.clock().Now();
  std::vector<std::string> names;
  std::vector<Creation> creations;
  for (const auto& [name, json] : secrets) {
    const auto seen = seen_.find(name);
    if (seen == seen_.end() || SecondsBetween(seen->second, now) >= kTrustSeconds) {
      names.push_back(name);
      creations.push_back({kSecrets, namespace_name, json});
    }
  }
  std::vector<ObjectAnswer> answers = CreateAll(client, creations, stop);
  std::map<std::string, ObjectAnswer> refused;
  for (size_t i = 0; i < names.size(); ++i) {
    if (answers[i].ok()) {
      seen_[names[i]] = now;
    } else {
      refused.emplace(names[i], std::move(answers[i]));
    }
  }
  return refused;
}

}  // namespace sluice::k8s
