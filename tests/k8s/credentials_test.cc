#include "k8s/credentials.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/k8s/hand_clock.h"

namespace sluice::k8s {
namespace {

using std::chrono::seconds;

class CredentialsTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  Result<std::unique_ptr<Credentials>> InCluster(const std::string& host) {
    return CredentialsInCluster({host, "443", folder_}, clock_);
  }
  Result<std::unique_ptr<Credentials>> FromConfig(const std::string& text,
                                                  const std::string& context = "") {
    return CredentialsFromKubeconfig({Write("config", text)}, context, clock_);
  }

  const std::string folder_ = testing::TempDir() + "k8s_credentials_" + std::to_string(getpid()) +
                              testing::UnitTest::GetInstance()->current_test_info()->name();
  HandClock clock_;
};

TEST_F(CredentialsTest, APodFindsItsServerTokenAndNamespace) {
  Write("ca.crt", "the CA");
  Write("token", "secret-1\n");
  Write("namespace", "team-a");
  const auto credentials = InCluster("10.96.0.1");
  ASSERT_TRUE(credentials.ok()) << credentials.status().ToString();
  EXPECT_EQ((*credentials)->cluster().url, "https://10.96.0.1:443");
  EXPECT_EQ((*credentials)->cluster().ca_pem, "the CA");
  EXPECT_EQ((*credentials)->namespace_name(), "team-a");
  EXPECT_EQ((*credentials)->Current()->token, "secret-1");
  EXPECT_EQ((*InCluster("fd00::1").value()).cluster().url, "https://[fd00::1]:443");
}

TEST_F(CredentialsTest, AMachineThatIsNoPodIsTold) {
  const auto outside = CredentialsInCluster({"", "", folder_}, clock_);
  EXPECT_EQ(outside.status().message(),
            "this is not a pod: KUBERNETES_SERVICE_HOST and _PORT are not set");
  Write("ca.crt", "the CA");
  EXPECT_EQ(InCluster("10.96.0.1").status().message(),
            "cannot read " + folder_ + "/token: No such file or directory");
  Write("token", " \n");
  EXPECT_EQ(InCluster("10.96.0.1").status().message(), folder_ + "/token holds no token");
}

TEST_F(CredentialsTest, ATokenIsReadAgainAfterAMinuteAndWhenItIsRefused) {
  Write("ca.crt", "the CA");
  Write("token", "one");
  const auto credentials = InCluster("10.96.0.1").value();
  const Login first = *credentials->Current();
  Write("token", "two");
  clock_.Advance(seconds(59));
  EXPECT_EQ(credentials->Current()->token, "one");
  clock_.Advance(seconds(1));
  EXPECT_EQ(credentials->Current()->token, "two");
  Write("token", "three");
  credentials->Refused(first);  // which another process has replaced meanwhile
  EXPECT_EQ(credentials->Current()->token, "two");
  credentials->Refused(*credentials->Current());
  EXPECT_EQ(credentials->Current()->token, "three");
  Write("token", "");  // while it is being rewritten
  clock_.Advance(seconds(61));
  EXPECT_EQ(credentials->Current()->token, "three");
}

constexpr const char* kConfig = R"(
apiVersion: v1
kind: Config
current-context: here
contexts:
- {name: here, context: {cluster: c, user: u, namespace: team-b}}
- {name: there, context: {cluster: other, user: nobody}}
clusters:
- name: c
  cluster:
    server: https://api.example:6443/
    certificate-authority-data: dGhlIENB
    tls-server-name: kubernetes
    proxy-url: http://proxy.example:3128
users:
- name: u
  user: {client-certificate: cert.pem, client-key-data: dGhlIGtleQ==}
)";

TEST_F(CredentialsTest, AKubeconfigSaysWhereAndWho) {
  Write("cert.pem", "the certificate");  // next to the kubeconfig
  const auto read = FromConfig(kConfig);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  const Cluster& cluster = (*read)->cluster();
  EXPECT_EQ(cluster.url, "https://api.example:6443");
  EXPECT_EQ(cluster.ca_pem, "the CA");
  EXPECT_EQ(cluster.server_name, "kubernetes");
  EXPECT_EQ(cluster.proxy, "http://proxy.example:3128");
  EXPECT_EQ((*read)->namespace_name(), "team-b");
  EXPECT_EQ((*read)->Current()->certificate_pem, "the certificate");
  EXPECT_EQ((*read)->Current()->key_pem, "the key");
  EXPECT_EQ((*read)->Current()->token, "");
}

TEST_F(CredentialsTest, OfSeveralKubeconfigsTheFirstThatHasANameDecides) {
  const std::string first = Write("first", R"(
current-context: x
users: [{name: u, user: {token: from the first}}]
)");
  const std::string second = Write("second", R"(
current-context: y
contexts: [{name: x, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {token: from the second}}]
)");
  const auto read = CredentialsFromKubeconfig({first, second}, "", clock_);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ((*read)->Current()->token, "from the first");
  EXPECT_EQ((*read)->namespace_name(), "default");
}

TEST_F(CredentialsTest, WhatAKubeconfigLacksIsNamed) {
  const auto problem = [this](const std::string& text, const std::string& context = "") {
    return FromConfig(text, context).status().message();
  };
  EXPECT_EQ(problem("a: 1"), folder_ + "/config names no current-context");
  EXPECT_EQ(problem(kConfig, "nowhere"), "the kubeconfig has no context 'nowhere'");
  EXPECT_EQ(problem(kConfig, "there"), "the kubeconfig has no cluster 'other'");
  EXPECT_EQ(problem("[1, 2"),
            "the kubeconfig is not YAML: yaml-cpp: error at line 1, column 1: end "
            "of sequence flow not found");
  EXPECT_EQ(problem("just text"), folder_ + "/config is not a kubeconfig");
  const std::string head = R"(
current-context: x
contexts: [{name: x, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://h"}}]
)";
  EXPECT_EQ(problem(head + "users: [{name: u, user: {username: a, password: b}}]"),
            "user 'u' of " + folder_ + "/config logs in by username");
  EXPECT_EQ(problem(head + "users: [{name: u, user: {client-certificate-data: '%%%'}}]"),
            "client-certificate-data of user 'u' of " + folder_ + "/config is not base64");
  EXPECT_EQ(problem(head + "users: [{name: u, user: {client-certificate-data: YQ==}}]"),
            "user 'u' of " + folder_ + "/config has a certificate or a key, and needs both");
  EXPECT_EQ(problem(head + "users: [{name: u, user: {exec: {apiVersion: v1, command: x}}}]"),
            "the exec plug-in of user 'u' of " + folder_ + "/config speaks 'v1'");
}

class ExecPluginTest : public CredentialsTest {
 protected:
  // A kubeconfig whose user is a script that prints `output`.
  Result<std::unique_ptr<Credentials>> WithScript(const std::string& script) {
    const std::string path = Write("plugin", "#!/bin/sh\n" + script);
    chmod(path.c_str(), 0700);
    return FromConfig(R"(
current-context: x
contexts: [{name: x, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://h"}}]
users:
- name: u
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: ./plugin
      args: [one, "two words"]
      env: [{name: PLUGIN_WORD, value: hello}]
      provideClusterInfo: true
)");
  }
};

TEST_F(ExecPluginTest, GivesATokenUntilItExpires) {
  const std::string script = "echo run >> " + folder_ + R"(/runs
cat << END
{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status":
{"token": "$PLUGIN_WORD $2", "expirationTimestamp": "2100-01-01T00:00:00Z"}}
END
printf %s "$KUBERNETES_EXEC_INFO" > )" +
                             folder_ + "/info\n";
  const auto credentials = WithScript(script);
  ASSERT_TRUE(credentials.ok()) << credentials.status().ToString();
  EXPECT_EQ((*credentials)->Current()->token, "hello two words");
  clock_.Advance(seconds(3600));
  EXPECT_TRUE((*credentials)->Current().ok());
  std::ifstream runs(folder_ + "/runs");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(runs), {}), "run\n");
  std::ifstream info(folder_ + "/info");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(info), {}),
            R"({"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",)"
            R"("spec":{"interactive":false,"cluster":{"server":"https://h"}}})");
}

TEST_F(ExecPluginTest, WhatIsExpiredOrRefusedIsAskedForAgain) {
  const std::string runs = folder_ + "/runs";
  const auto credentials = WithScript("echo run >> " + runs + "\ncount=`wc -l < " + runs + R"(`
cat << END
{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status":
{"token": "$count", "expirationTimestamp": "2001-01-01T00:00:00Z"}}
END
)");
  ASSERT_TRUE(credentials.ok()) << credentials.status().ToString();
  EXPECT_EQ((*credentials)->Current()->token, "1");
  EXPECT_EQ((*credentials)->Current()->token, "2");
}

TEST_F(ExecPluginTest, HowItFailsIsSaid) {
  const auto problem = [this](const std::string& script) {
    return WithScript(script).value()->Current().status().message();
  };
  const std::string name = "the kubeconfig's exec plug-in " + folder_ + "/./plugin";
  EXPECT_EQ(problem("exit 3\n"), name + " ended with 3");
  EXPECT_EQ(problem("kill -9 $$\n"), name + " was killed by signal 9");
  EXPECT_EQ(problem("echo hello\n"),
            "what " + name + " printed is not JSON: Invalid value. at byte 0");
  EXPECT_EQ(problem("echo '{}'\n"), "what " + name +
                                        " printed is not an ExecCredential of "
                                        "client.authentication.k8s.io/v1");
  EXPECT_EQ(problem("while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done\n"),
            name + " says more than 1 MiB");
}

}  // namespace
}  // namespace sluice::k8s
