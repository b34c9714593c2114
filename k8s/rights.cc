#include "k8s/rights.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <utility>

#include "k8s/cluster_objects.h"
#include "k8s/disruption_budget.h"
#include "k8s/event_recorder.h"
#include "k8s/json_internal.h"
#include "k8s/training_job.h"

namespace sluice::k8s {
namespace {

constexpr Resource kReviews{"authorization.k8s.io", "v1", "selfsubjectaccessreviews"};

const std::vector<Verb> kFollow = {Verb::kGet, Verb::kList, Verb::kWatch};

ApiRequest Review(const Right& right, Verb verb, const std::string& namespace_name) {
  rapidjson::Document review;
  review.SetObject();
  auto& memory = review.GetAllocator();
  const auto text = [&memory](std::string_view value) { return JsonText(value, memory); };
  SetMember(review, "apiVersion", text(kReviews.ApiVersion()), memory);
  SetMember(review, "kind", text("SelfSubjectAccessReview"), memory);
  rapidjson::Value& asked = Within(review, {"spec", "resourceAttributes"}, memory);
  SetMember(asked, "verb", text(VerbName(verb)), memory);
  SetMember(asked, "group", text(right.resource.group), memory);
  SetMember(asked, "resource", text(right.resource.plural), memory);
  SetMember(asked, "subresource", text(right.subresource), memory);
  SetMember(asked, "namespace", text(right.cluster ? "" : namespace_name), memory);
  return {Verb::kCreate, kReviews, "", "", "", {}, ToJson(review)};
}

std::string Describe(const Right& right, Verb verb) {
  return fmt::format("{} {}{}{}", VerbName(verb), right.resource.plural,
                     right.subresource.empty() ? "" : "/", right.subresource);
}

}  // namespace

std::string AccountName(Account account) {
  switch (account) {
    case Account::kGateway:
      return "sluice-gateway";
    case Account::kMaster:
      return "sluice-master";
    case Account::kController:
      break;
  }
  return "sluice-controller";
}

std::vector<Right> RightsOf(Account account) {
  const std::vector<Verb> services = {Verb::kGet,    Verb::kList,   Verb::kWatch,
                                      Verb::kCreate, Verb::kUpdate, Verb::kDelete};
  const std::vector<Verb> pods = {Verb::kGet, Verb::kList, Verb::kWatch, Verb::kCreate,
                                  Verb::kDelete};
  const std::vector<Verb> lease = {Verb::kGet, Verb::kCreate, Verb::kUpdate};
  const std::vector<Verb> tell = {Verb::kCreate, Verb::kPatch};
  switch (account) {
    case Account::kGateway:
      return {{kTrainingJobs,
               "",
               {Verb::kGet, Verb::kList, Verb::kWatch, Verb::kCreate, Verb::kUpdate, Verb::kPatch,
                Verb::kDelete}},
              {kTrainingJobs, "status", {Verb::kPatch}},
              {kPods, "", pods},
              {kServices, "", services},
              {kSecrets, "", {Verb::kGet, Verb::kCreate, Verb::kDelete}},
              {kPodTemplates, "", {Verb::kGet}},
              {kLeases, "", lease},
              {kEvents, "", tell},
              // SHOW CLUSTER, and EXPLAIN of a training on pods.
              {kTrainingJobs, "", {Verb::kList}, true, false},
              {kPods, "", {Verb::kList}, true, false},
              {kNodes, "", {Verb::kList}, true, false},
              {kQuotas, "", {Verb::kList}, true, false}};
    case Account::kMaster:
      return {{kTrainingJobs, "", kFollow},
              {kTrainingJobs, "status", {Verb::kPatch}},
              {kPods, "", pods},
              {kSecrets, "", {Verb::kCreate}},
              {kPodTemplates, "", {Verb::kGet}},
              {kDisruptionBudgets, "", {Verb::kGet, Verb::kCreate, Verb::kPatch, Verb::kDelete}},
              {kLeases, "", lease},
              {kEvents, "", tell}};
    case Account::kController:
      break;
  }
  return {{kTrainingJobs, "", kFollow, true},
          {kTrainingJobs, "status", {Verb::kPatch}, true},
          {kPods, "", kFollow, true},
          {kNodes, "", kFollow, true},
          {kQuotas, "", kFollow, true},
          {kLeases, "", lease},
          // TrainingJobs in namespaces without a gateway.
          {kEvents, "", tell, true}};
}

Status CheckRights(ApiClient& client, Account account, const std::string& namespace_name,
                   const std::stop_token& stop) {
  std::vector<ApiRequest> reviews;
  std::vector<std::string> asked;
  for (const Right& right : RightsOf(account)) {
    if (!right.needed) {
      continue;
    }
    for (const Verb verb : right.verbs) {
      reviews.push_back(Review(right, verb, namespace_name));
      asked.push_back(Describe(right, verb));
    }
  }
  const std::vector<ApiAnswer> answers = client.CallAll(reviews, stop);
  std::vector<std::string> missing;
  for (size_t i = 0; i < answers.size(); ++i) {
    RETURN_IF_ERROR(answers[i].status);
    ASSIGN_OR_RETURN(const rapidjson::Document review,
                     ParseJsonObject(answers[i].body, "the API server's answer about a right"));
    if (!TrueIn(review, {"status", "allowed"})) {
      missing.push_back(asked[i]);
    }
  }
  if (missing.empty()) {
    return OkStatus();
  }
  return Status(Code::kPermissionDenied, fmt::format("rights are missing in namespace '{}': {}",
                                                     namespace_name, fmt::join(missing, ", ")))
      .Hint(fmt::format("`sluice k8s manifests` has a service account '{}' with them",
                        AccountName(account)));
}

}  // namespace sluice::k8s
