#include "tests/k8s/tested_api_server.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "k8s/api_verbs.h"
#include "k8s/training_job.h"

namespace sluice::k8s {
namespace {

constexpr Resource kNamespaces{"", "v1", "namespaces"};
constexpr Resource kServiceAccounts{"", "v1", "serviceaccounts"};

class OneToken : public LoginSource {
 public:
  explicit OneToken(std::string token) : token_(std::move(token)) {}
  Result<Answer> Read() override {
    Answer answer;
    answer.login.token = token_;
    return answer;
  }

 private:
  const std::string token_;
};

}  // namespace

bool TestedApiServer::HasReal() {
  return std::getenv("SLUICE_TEST_KUBERNETES") != nullptr;
}

bool TestedApiServer::HasScheduler() {
  return HasReal() && std::getenv("SLUICE_TEST_SCHEDULER") != nullptr;
}

TestedApiServer::TestedApiServer(bool real) {
  static std::atomic<int> count = 0;
  namespace_ = fmt::format("test-{}-{}", getpid(), ++count);
  if (real) {
    config_ = std::getenv("SLUICE_TEST_KUBERNETES");
  } else {
    fake_ = std::make_unique<FakeApiServer>();
    fake_->Demand("admin");
    config_ = fmt::format("{}/kubeconfig-{}", testing::TempDir(), namespace_);
    std::ofstream(config_) << fmt::format(R"(
clusters: [{{name: c, cluster: {{server: "{}"}}}}]
users:
- {{name: admin, user: {{token: admin}}}}
- {{name: powerless, user: {{token: powerless}}}}
- {{name: stranger, user: {{token: stranger}}}}
contexts:
- {{name: certificate, context: {{cluster: c, user: admin}}}}
- {{name: token, context: {{cluster: c, user: admin}}}}
- {{name: powerless, context: {{cluster: c, user: powerless}}}}
- {{name: stranger, context: {{cluster: c, user: stranger}}}}
)",
                                          fake_->url());
  }
  client_ = &As("certificate");
  ApiRequest request;
  request.verb = Verb::kCreate;
  request.resource = kNamespaces;
  request.body = fmt::format(R"({{"metadata":{{"name":"{}"}}}})", namespace_);
  const ApiAnswer made = client_->Call(request, {});
  EXPECT_TRUE(made.ok()) << made.status.ToString();
  if (real && HasScheduler()) {
    AwaitServiceAccount();
  }
}

// Where there are controllers, a namespace takes pods when they have given it an account and that
// a token; until then the API server asks clients to try again later, by a clock that stands still.
void TestedApiServer::AwaitServiceAccount() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  bool ready = false;
  while (!ready && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const ObjectAnswer account = GetObject(*client_, kServiceAccounts, namespace_, "default", {});
    ready = account.ok() && account.object.json.find("\"secrets\":") != std::string::npos;
  }
  EXPECT_TRUE(ready) << "namespace " << namespace_ << " has no account";
}

TestedApiServer::~TestedApiServer() {
  if (fake_ != nullptr) {
    std::filesystem::remove(config_);
    return;
  }
  // The next test's controller shares the cluster with all that there is. No TrainingJobs: the
  // server may not know the kind.
  std::vector<Deletion> jobs;
  for (const Object& job : ListObjects(*client_, {kTrainingJobs, namespace_, ""}, {}).objects) {
    jobs.push_back({kTrainingJobs, namespace_, job.name, job.uid, 1});
  }
  for (const ApiAnswer& answer : DeleteAll(*client_, jobs, {})) {
    EXPECT_TRUE(answer.ok()) << answer.status.ToString();
  }
  const Listing pods = ListObjects(*client_, {kPods, namespace_, ""}, {});
  EXPECT_TRUE(pods.ok()) << pods.status.ToString();
  for (const Object& pod : pods.objects) {
    Forget(pod.name);
  }
}

ApiClient& TestedApiServer::As(const std::string& context) {
  Login& login = logins_[context];
  if (login.client == nullptr) {
    login.credentials = CredentialsFromKubeconfig({config_}, context, clock_).value();
    login.client = std::make_unique<ApiClient>(*login.credentials, ApiOptions(), clock_);
  }
  return *login.client;
}

ApiClient& TestedApiServer::WithToken(const std::string& token) {
  Login& login = logins_["the token " + token];
  if (login.client == nullptr) {
    login.credentials = std::make_unique<Credentials>(client_->credentials().cluster(), namespace_,
                                                      std::make_unique<OneToken>(token), clock_);
    login.client = std::make_unique<ApiClient>(*login.credentials, ApiOptions(), clock_);
  }
  return *login.client;
}

ApiAnswer TestedApiServer::Do(Verb verb, const Resource& resource, const std::string& name,
                              const std::string& subresource, const std::string& body) {
  ApiRequest request;
  request.verb = verb;
  request.resource = resource;
  request.namespace_name = namespace_;
  request.name = name;
  request.subresource = subresource;
  request.body = body;
  ApiAnswer answer = client_->Call(request, {});
  EXPECT_TRUE(answer.ok()) << answer.status.ToString();
  return answer;
}

void TestedApiServer::Bind(const std::string& pod, const std::string& node) {
  Do(Verb::kCreate, kPods, pod, "binding",
     fmt::format(R"({{"apiVersion":"v1","kind":"Binding","metadata":{{"name":"{}"}},)"
                 R"("target":{{"apiVersion":"v1","kind":"Node","name":"{}"}}}})",
                 pod, node));
}

void TestedApiServer::SetStatus(const std::string& pod, const std::string& status_json) {
  Do(Verb::kPatch, kPods, pod, "status", fmt::format(R"({{"status":{}}})", status_json));
}

void TestedApiServer::Forget(const std::string& pod) {
  Do(Verb::kDelete, kPods, pod, "",
     R"({"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0})");
}

void TestedApiServer::Compact() {
  if (fake_ != nullptr) {
    fake_->Compact();
    return;
  }
  const std::filesystem::path script =
      std::filesystem::path(config_).parent_path() / "compact";  // of with_api_server
  EXPECT_EQ(std::system(script.c_str()), 0);
}

std::string PodJson(const std::string& name, const std::string& labels_json,
                    const std::string& more_spec) {
  return fmt::format(R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{}","labels":{}}},)"
                     R"("spec":{{"containers":[{{"name":"sluice","image":"sluice"}}]{}}}}})",
                     name, labels_json, more_spec);
}

}  // namespace sluice::k8s
