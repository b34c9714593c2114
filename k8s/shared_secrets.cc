#include "k8s/shared_secrets.h"

#include <utility>
#include <vector>

#include "base/log.h"

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
    const auto known = secrets_.find(name);
    if (known == secrets_.end() || SecondsBetween(known->second.seen, now) >= kTrustSeconds) {
      names.push_back(name);
      creations.push_back({kSecrets, namespace_name, json});
    }
  }
  std::vector<ObjectAnswer> answers = CreateMissing(client, creations, stop);
  std::map<std::string, ObjectAnswer> refused;
  for (size_t i = 0; i < names.size(); ++i) {
    if (answers[i].ok()) {
      secrets_[names[i]] = {creations[i].json, now};
    } else {
      refused.emplace(names[i], std::move(answers[i]));
    }
  }
  return refused;
}

void SharedSecrets::Know(const std::map<std::string, std::string>& secrets) {
  for (const auto& [name, json] : secrets) {
    secrets_.try_emplace(name, Secret{json, {}});
  }
}

void SharedSecrets::CreateAgain(ApiClient& client, const std::string& namespace_name,
                                const std::stop_token& stop) {
  created_again_ = client.clock().Now();
  std::map<std::string, std::string> all;
  for (const auto& [name, secret] : secrets_) {
    all.emplace(name, secret.json);
  }
  for (const auto& [name, answer] : Create(client, namespace_name, all, stop)) {
    if (!stop.stop_requested()) {
      log::Warn("kubernetes secret={} may be missing error={}", name, answer.status.message());
    }
  }
}

bool SharedSecrets::MayBeMissing(TimePoint now) const {
  return SecondsBetween(created_again_, now) >= kTrustSeconds;
}

}  // namespace sluice::k8s
