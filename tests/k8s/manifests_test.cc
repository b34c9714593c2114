#include "k8s/manifests.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "k8s/api_verbs.h"
#include "k8s/controller.h"
#include "k8s/json_internal.h"
#include "k8s/rights.h"
#include "k8s/training_job.h"
#include "k8s/training_job_status.h"
#include "tests/k8s/tested_api_server.h"

namespace sluice::k8s {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string ReadText(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<Manifest> ManifestsFor(const std::string& namespace_name) {
  return BuildManifests({namespace_name, "registry.example/sluice@sha256:1"}).value();
}

// UPDATE_GOLDEN=1 rewrites the files.
TEST(Manifests, AreAsTheyWereReviewed) {
  const fs::path folder = fs::path(SLUICE_SOURCE_DIR) / "tests/k8s/manifests";
  const std::vector<Manifest> manifests = ManifestsFor("sluice");
  std::vector<Manifest> all = manifests;
  for (const char* base : {kClusterBase, kGatewayBase}) {
    all.push_back({base, "kustomization.yaml", Kustomization(manifests, base)});
  }
  for (const Manifest& each : all) {
    const fs::path file = folder / each.folder / each.file;
    if (std::getenv("UPDATE_GOLDEN") != nullptr) {
      fs::create_directories(file.parent_path());
      std::ofstream(file) << each.yaml;
    }
    EXPECT_EQ(each.yaml, ReadText(file)) << file;
  }
}

// `kubectl delete -k` of one namespace takes nothing from the others.
TEST(Manifests, ANamespaceHasNoObjectOfTheWholeCluster) {
  for (const Manifest& each : ManifestsFor("team")) {
    const bool of_cluster = each.folder == kClusterBase;
    for (const char* word :
         {"CustomResourceDefinition", "PriorityClass", "ClusterRole", "sluice-controller"}) {
      EXPECT_TRUE(of_cluster || each.yaml.find(word) == std::string::npos)
          << each.file << " has " << word;
    }
    EXPECT_EQ(each.yaml.find(of_cluster ? "namespace: team" : "namespace: sluice"),
              std::string::npos)
        << each.file;
  }
}

TEST(Manifests, WhatStatementsMayPutIntoPodsIsAnArgumentOfTheGateway) {
  const std::vector<Manifest> manifests = BuildManifests({"a", "b", "claim=c:/it's"}).value();
  int gateways = 0;
  for (const Manifest& each : manifests) {
    const bool has =
        each.yaml.find("        - '--pods-allow=claim=c:/it''s'\n") != std::string::npos;
    EXPECT_EQ(has, each.file == "gateway.yaml") << each.yaml;
    gateways += has ? 1 : 0;
  }
  EXPECT_EQ(gateways, 1);
}

// The templates of the chart `folder`, with its values, as Helm renders them; "": there is no Go.
std::string Rendered(const fs::path& folder, const std::string& namespace_name) {
  std::string go;
  for (const char* const path : {"/usr/lib/go-1.19/bin/go", "/usr/bin/go"}) {
    go = go.empty() && fs::exists(path) ? path : go;
  }
  if (go.empty()) {
    return "";
  }
  const std::string command = "GO111MODULE=off " + go +
                              " run " SLUICE_SOURCE_DIR "/tests/k8s/render_chart.go " +
                              folder.string() + " " + namespace_name;
  FILE* const output = popen(command.c_str(), "r");
  std::string text;
  char part[4096];
  for (size_t size = 0; (size = fread(part, 1, sizeof(part), output)) > 0;) {
    text.append(part, size);
  }
  EXPECT_EQ(pclose(output), 0);
  return text;
}

TEST(Manifests, ChartsMakeTheSameObjects) {
  const ManifestOptions options{"team", "registry.example/sluice@sha256:1", "claim=c:/data"};
  const fs::path folder = fs::path(::testing::TempDir()) / "charts";
  for (const Manifest& each : BuildCharts(options, "1.2.3").value()) {
    fs::create_directories(folder / each.folder);
    std::ofstream(folder / each.folder / each.file) << each.yaml;
  }
  std::map<std::string, std::map<std::string, std::string>> bases;
  for (const Manifest& each : BuildManifests(options).value()) {
    bases[each.folder][each.file] = each.yaml;
  }
  EXPECT_EQ(ReadText(folder / "cluster/crds/training_job.yaml"),
            bases[kClusterBase]["training_job.yaml"]);
  EXPECT_EQ(ReadText(folder / "gateway/Chart.yaml"),
            "apiVersion: v2\nname: sluice-gateway\nversion: 1.2.3\n");
  for (const char* const base : {kClusterBase, kGatewayBase}) {
    std::string expected;
    for (const auto& [file, yaml] : bases[base]) {
      if (file != "namespace.yaml" && file != "training_job.yaml") {
        expected += "# " + file + "\n" + yaml;
      }
    }
    // Go quotes it in its own way.
    const std::string argument = "'--pods-allow=claim=c:/data'";
    if (const size_t at = expected.find(argument); at != std::string::npos) {
      expected.replace(at, argument.size(), R"("--pods-allow=claim=c:/data")");
    }
    const std::string rendered = Rendered(folder / base, "team");
    if (rendered.empty()) {
      GTEST_SKIP() << "needs Go: scripts/install_packages --kubernetes";
    }
    EXPECT_EQ(rendered, expected);
  }
}

TEST(Manifests, NamesThatAreNoneAreRefusedAtOnce) {
  const Status status = BuildManifests({"My Team", "a\nb: c"}).status();
  ASSERT_EQ(status.diagnostics().size(), 2U);
  EXPECT_THAT(status.diagnostics()[0].message, HasSubstr("'My Team' is not a valid namespace"));
  EXPECT_THAT(status.diagnostics()[1].message, HasSubstr("is not a valid image name"));
  EXPECT_FALSE(BuildManifests({"", "i"}).ok());
  EXPECT_FALSE(BuildManifests({std::string(64, 'a'), "i"}).ok());
  EXPECT_FALSE(BuildManifests({"a-", "i"}).ok());
}

TEST(Manifests, RulesOfValidationMayBeLeftOut) {
  for (const Manifest& each : BuildManifests({"a", "b", "", false}).value()) {
    EXPECT_EQ(each.yaml.find("x-kubernetes-validations"), std::string::npos) << each.file;
  }
}

TEST(Manifests, EveryWordIsFilledIn) {
  for (const Manifest& each : ManifestsFor("team")) {
    for (const char* word : {"NAMESPACE", "IMAGE", "CONTROL", "POLICY", "ACCOUNT", "RULES",
                             "COMPONENT", "GRACE", "ROLE", "KIND", "WHERE", "SUBJECT", "MORE"}) {
      EXPECT_EQ(each.yaml.find(word), std::string::npos) << each.file << " " << word;
    }
  }
  for (const Manifest& each : ManifestsFor("default")) {  // it always exists
    EXPECT_FALSE(each.folder == kGatewayBase && each.file == "namespace.yaml");
  }
}

// Applied to a real API server as by an administrator: checks its validation, and ours.
class ManifestsContract : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!TestedApiServer::HasReal()) {
      GTEST_SKIP() << "needs a Kubernetes API server: SLUICE_TEST_KUBERNETES";
    }
    server_ = std::make_unique<TestedApiServer>(true);
    const fs::path file = fs::path(::testing::TempDir()) / (ns() + ".yaml");
    std::ofstream out(file);
    for (const Manifest& each : BuildManifests({ns(), "sluice", "", false}).value()) {
      out << each.yaml << "---\n";
    }
    out.close();
    ASSERT_THAT(Run("apply -f " + file.string()),
                HasSubstr("deployment.apps/sluice-gateway created"));
    ASSERT_THAT(Kubectl("wait --for=condition=Established --timeout=30s "
                        "crd/trainingjobs.training.sluice"),
                HasSubstr("condition met"));
    // The API of a new kind is available a moment after it is established.
    for (int i = 0; i < 300 && Kubectl("get tj").find("No resources") == std::string::npos; ++i) {
    }
  }

  // The namespace of the controller outlives the test, and its pods would need nodes of others.
  void TearDown() override {
    if (server_ != nullptr) {
      Run(fmt::format("--namespace {} delete deployment/sluice-controller", kControllerNamespace));
    }
  }

  const std::string& ns() { return server_->namespace_name(); }
  std::string Kubectl(const std::string& arguments) {
    return Run(fmt::format("--namespace {} {}", ns(), arguments));
  }
  static std::string Run(const std::string& arguments) {
    const std::string command = fmt::format("kubectl --kubeconfig {} {} 2>&1",
                                            std::getenv("SLUICE_TEST_KUBERNETES"), arguments);
    FILE* const pipe = popen(command.c_str(), "r");
    std::string output;
    for (int c = fgetc(pipe); c != EOF; c = fgetc(pipe)) {
      output += static_cast<char>(c);
    }
    pclose(pipe);
    return output;
  }
  ObjectAnswer Create(const std::string& json) {
    return CreateAll(server_->client(), {{kTrainingJobs, ns(), json}}, {}).front();
  }
  static TrainingJobSpec Spec() {
    TrainingJobSpec spec;
    spec.statement = "SELECT * FROM t TO TRAIN DNNClassifier LABEL y INTO m";
    spec.source_secret = "db";
    spec.workers.min = 1;
    spec.workers.max = 4;
    spec.workers.resources.requests["cpu"] = Quantity::OfMillis(500);
    spec.workers.priority = {true, 0.5};
    return spec;
  }
  std::string NamespaceOf(Account account) {
    return account == Account::kController ? std::string(kControllerNamespace) : ns();
  }
  ApiClient& As(Account account) {
    ApiRequest request{
        Verb::kCreate,
        {"", "v1", "serviceaccounts"},
        NamespaceOf(account),
        AccountName(account),
        "token",
        {},
        R"({"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}})"};
    const ApiAnswer answer = server_->client().Call(request, {});
    EXPECT_TRUE(answer.ok()) << answer.status.ToString();
    const auto document = ParseJsonObject(answer.body, "the token").value();
    return server_->WithToken(std::string(TextIn(document, {"status", "token"})));
  }

  std::unique_ptr<TestedApiServer> server_;
};

TEST_F(ManifestsContract, ATrainingJobIsTakenAndAWrongOneRefused) {
  const ObjectAnswer made = Create(BuildTrainingJob(ns(), "good", Spec()));
  ASSERT_TRUE(made.ok()) << made.status.ToString();
  EXPECT_EQ(ParseTrainingJobSpec(made.object.json).value(), Spec());

  // What our validation refuses, the schema refuses, too, where it can express it.
  const struct {
    const char* field;
    const char* spec;
  } wrong[] = {
      {"spec.statement", R"("source":{"secretName":"db"})"},
      {"spec.workers.min",
       R"("statement":"SELECT 1","source":{"secretName":"db"},"workers":{"min":0})"},
      {"spec.workers.resources.requests.memory",
       R"("statement":"SELECT 1","source":{"secretName":"db"},)"
       R"("workers":{"resources":{"requests":{"memory":"4GB"}}})"},
      {"spec.workers.priority",
       R"("statement":"SELECT 1","source":{"secretName":"db"},"workers":{"priority":"urgent"})"},
      {"spec.volumes.mountPath", R"("statement":"SELECT 1","source":{"secretName":"db"},)"
                                 R"("volumes":[{"claimName":"c","mountPath":"data"}])"},
      {"spec.suspend", R"("statement":"SELECT 1","source":{"secretName":"db"},"suspend":"yes")"},
  };
  for (const auto& each : wrong) {
    const std::string json = fmt::format(
        R"({{"apiVersion":"training.sluice/v1alpha1","kind":"TrainingJob","metadata":{{"name":"bad"}},)"
        R"("spec":{{{}}}}})",
        each.spec);
    const ObjectAnswer refused = Create(json);
    EXPECT_EQ(refused.fault, Fault::kInvalid) << each.field;
    EXPECT_THAT(refused.status.ToString(), HasSubstr(each.field));
    EXPECT_FALSE(ParseTrainingJobSpec(json).ok()) << each.field;
  }
}

TEST_F(ManifestsContract, TheStatusIsShownAndKeepsWhatItDoesNotKnow) {
  ASSERT_TRUE(Create(BuildTrainingJob(ns(), "j", Spec())).ok());
  const auto patch = [&](const std::string& json) {
    const ObjectAnswer answer =
        PatchObject(server_->client(), kTrainingJobs, ns(), "j", "status", json, {});
    EXPECT_TRUE(answer.ok()) << answer.status.ToString();
    return answer.object.json;
  };
  patch(R"({"status":{"ofALaterVersion":{"x":1}}})");
  patch(GrantPatch(Grant{3, {"w-1"}, {}}));
  TrainingJobStatus status;
  status.job = 7;
  status.running_workers = 3;
  status.percent = 41;
  status.loss = 0.25;
  SetCondition(status, kConditionRunning, true, "Trains", "", "2026-01-02T03:04:05Z");
  const std::string json = patch(StatusPatch(TrainingJobStatus(), status).value());
  EXPECT_THAT(json, HasSubstr(R"("ofALaterVersion":{"x":1})"));
  status.grant = Grant{3, {"w-1"}, {}};
  EXPECT_EQ(ParseTrainingJobStatus(json).value(), status);
  EXPECT_THAT(Kubectl("get tj j"),
              AllOf(HasSubstr("STATE"), HasSubstr("Running"), HasSubstr("41"), HasSubstr("0.25")));
  EXPECT_THAT(Kubectl("wait --for=condition=Running --timeout=5s tj/j"),
              HasSubstr("condition met"));
}

// As a platform's administrator limits a tenant.
TEST_F(ManifestsContract, AQuotaLimitsTheNumberOfTrainingJobs) {
  constexpr std::string_view kCount = R"({"count/trainingjobs.training.sluice":"1"})";
  constexpr Resource kResourceQuotas{"", "v1", "resourcequotas"};
  const std::string quota =
      fmt::format(R"({{"metadata":{{"name":"q"}},"spec":{{"hard":{}}}}})", kCount);
  ASSERT_TRUE(CreateAll(server_->client(), {{kResourceQuotas, ns(), quota}}, {})[0].ok());
  // The controller of quotas may not run here.
  const std::string status = fmt::format(
      R"({{"status":{{"hard":{},"used":{{"count/trainingjobs.training.sluice":"0"}}}}}})", kCount);
  ASSERT_TRUE(
      PatchObject(server_->client(), kResourceQuotas, ns(), "q", "status", status, {}).ok());
  ObjectAnswer refused;
  for (int i = 0; i < 100 && refused.fault == Fault::kNone; ++i) {  // until the server has heard
    refused = Create(BuildTrainingJob(ns(), fmt::format("j{}", i), Spec()));
  }
  EXPECT_EQ(refused.fault, Fault::kQuota) << refused.status.ToString();
  EXPECT_THAT(refused.status.ToString(), HasSubstr("counts until it is deleted"));
}

TEST_F(ManifestsContract, ScalingSetsTheMostWorkers) {
  ASSERT_TRUE(Create(BuildTrainingJob(ns(), "j", Spec())).ok());
  EXPECT_THAT(Kubectl("scale tj/j --replicas=2"), HasSubstr("scaled"));
  const ObjectAnswer answer = GetObject(server_->client(), kTrainingJobs, ns(), "j", {});
  EXPECT_EQ(ParseTrainingJobSpec(answer.object.json).value().workers.max, 2U);
}

TEST_F(ManifestsContract, EachAccountHasItsRightsAndNoOthers) {
  for (const Account account : {Account::kGateway, Account::kMaster, Account::kController}) {
    ApiClient& client = As(account);
    const Status status = CheckRights(client, account, NamespaceOf(account), {});
    EXPECT_TRUE(status.ok()) << AccountName(account) << ": " << status.ToString();
    EXPECT_EQ(ListObjects(client, {kSecrets, ns(), ""}, {}).fault, Fault::kForbidden);
  }
  EXPECT_EQ(ListObjects(As(Account::kGateway), {kPods, "", ""}, {}).fault, Fault::kForbidden)
      << "of other namespaces, unless the cluster's administrator says so";
  EXPECT_NE(GetObject(As(Account::kGateway), kLeases, std::string(kControllerNamespace),
                      kControllerLease, {})
                .fault,
            Fault::kForbidden);
  // Neither the gateway's Secret nor another job's.
  for (const char* const secret : {"sluice-source", "job8-3fa9c2-master"}) {
    for (const Verb verb : {Verb::kGet, Verb::kUpdate, Verb::kPatch, Verb::kDelete}) {
      EXPECT_EQ(As(Account::kMaster).Call({verb, kSecrets, ns(), secret, "", {}, "{}"}, {}).fault,
                Fault::kForbidden)
          << VerbName(verb) << " " << secret;
    }
  }
  const Status missing = CheckRights(As(Account::kMaster), Account::kGateway, ns(), {});
  EXPECT_EQ(missing.code(), Code::kPermissionDenied);
  EXPECT_THAT(missing.message(),
              AllOf(HasSubstr("create trainingjobs"), HasSubstr("create services")));
}

TEST_F(ManifestsContract, AllMissingRightsAreNamedAtOnce) {
  const Status status = CheckRights(server_->As("powerless"), Account::kMaster, ns(), {});
  EXPECT_EQ(status.code(), Code::kPermissionDenied);
  EXPECT_EQ(
      status.message(),
      "rights are missing in namespace '" + ns() +
          "': get trainingjobs, list trainingjobs, watch trainingjobs, patch "
          "trainingjobs/status, get pods, list pods, watch pods, create pods, delete pods, "
          "create secrets, get podtemplates, get poddisruptionbudgets, "
          "create poddisruptionbudgets, patch poddisruptionbudgets, delete poddisruptionbudgets, "
          "get leases, create leases, update leases, create events, patch events");
}

}  // namespace
}  // namespace sluice::k8s
