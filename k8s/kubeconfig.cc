#include <fmt/core.h>
#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <optional>
#include <utility>

#include "k8s/credentials_internal.h"
#include "k8s/json_internal.h"

namespace sluice::k8s {
namespace {

struct ConfigFile {
  std::string path;
  YAML::Node root;
};

// An entry of one of the lists, with its file's folder, to which paths are relative.
struct Entry {
  YAML::Node node;
  std::filesystem::path folder;
  std::string where;  // "user 'alice' of /home/alice/.kube/config"
};

// yaml-cpp throws when a node of another type is read; here a node of another type counts as
// absent.
YAML::Node ChildOf(const YAML::Node& node, const std::string& name) {
  return node.IsMap() ? node[name] : YAML::Node(YAML::NodeType::Undefined);
}
std::string TextOf(const YAML::Node& node, const std::string& name) {
  const YAML::Node child = ChildOf(node, name);
  return child.IsDefined() && child.IsScalar() ? child.Scalar() : std::string();
}

Result<Entry> Find(const std::vector<ConfigFile>& files, const std::string& list,
                   const std::string& kind, const std::string& name) {
  for (const ConfigFile& file : files) {
    const YAML::Node entries = ChildOf(file.root, list);
    for (size_t i = 0; entries.IsDefined() && entries.IsSequence() && i < entries.size(); ++i) {
      const YAML::Node entry = entries[i];
      if (TextOf(entry, "name") == name) {
        return Entry{ChildOf(entry, kind), std::filesystem::path(file.path).parent_path(),
                     fmt::format("{} '{}' of {}", kind, name, file.path)};
      }
    }
  }
  return NotFound(fmt::format("the kubeconfig has no {} '{}'", kind, name));
}

std::string PathIn(const Entry& entry, const std::string& path) {
  return (entry.folder / path).string();  // an absolute path is unchanged
}

// `key`-data in base64, or the file that `key` names; empty if neither exists.
Result<std::string> PemOf(const Entry& entry, const std::string& key) {
  const std::string inlined = TextOf(entry.node, key + "-data");
  if (!inlined.empty()) {
    return DecodeBase64(inlined, fmt::format("{}-data of {}", key, entry.where));
  }
  const std::string file = TextOf(entry.node, key);
  return file.empty() ? std::string() : ReadCredentialFile(PathIn(entry, file));
}

// A user of a kubeconfig: tokens and certificates, in the file or in other files.
class KubeconfigUser final : public LoginSource {
 public:
  explicit KubeconfigUser(Entry user) : user_(std::move(user)) {}

  Result<Answer> Read() override {
    Answer answer;
    ASSIGN_OR_RETURN(answer.login.certificate_pem, PemOf(user_, "client-certificate"));
    ASSIGN_OR_RETURN(answer.login.key_pem, PemOf(user_, "client-key"));
    if (answer.login.certificate_pem.empty() != answer.login.key_pem.empty()) {
      return InvalidArgument(
          fmt::format("{} has a certificate or a key, and needs both", user_.where));
    }
    const std::string token_file = TextOf(user_.node, "tokenFile");
    answer.login.token = TextOf(user_.node, "token");
    if (!token_file.empty()) {  // takes precedence, as in client-go
      ASSIGN_OR_RETURN(answer.login.token, ReadTokenFile(PathIn(user_, token_file)));
    }
    answer.good_for_seconds = kReadAgainSeconds;
    return answer;
  }

 private:
  const Entry user_;
};

std::string ClusterJson(const Cluster& cluster) {
  rapidjson::Document info;
  info.SetObject();
  auto& memory = info.GetAllocator();
  SetMember(info, "server", JsonText(cluster.url, memory), memory);
  return ToJson(info);
}

Result<std::unique_ptr<LoginSource>> SourceOf(Entry user, const Cluster& cluster) {
  const YAML::Node exec = ChildOf(user.node, "exec");
  for (const std::string foreign : {"auth-provider", "username"}) {
    if (ChildOf(user.node, foreign).IsDefined()) {
      return Unimplemented(fmt::format("{} logs in by {}", user.where, foreign))
          .Hint("use a certificate, a token, or an exec plug-in");
    }
  }
  if (!exec.IsDefined() || !exec.IsMap()) {
    auto source = std::make_unique<KubeconfigUser>(std::move(user));
    RETURN_IF_ERROR(source->Read().status());
    return std::unique_ptr<LoginSource>(std::move(source));
  }
  ExecPlugin plugin;
  plugin.api_version = TextOf(exec, "apiVersion");
  plugin.command = TextOf(exec, "command");
  plugin.install_hint = TextOf(exec, "installHint");
  if (plugin.api_version != "client.authentication.k8s.io/v1" &&
      plugin.api_version != "client.authentication.k8s.io/v1beta1") {
    return Unimplemented(
               fmt::format("the exec plug-in of {} speaks '{}'", user.where, plugin.api_version))
        .Hint("client.authentication.k8s.io/v1 is understood, and v1beta1");
  }
  if (plugin.command.empty()) {
    return InvalidArgument(fmt::format("the exec plug-in of {} has no command", user.where));
  }
  if (plugin.command.find('/') != std::string::npos) {
    plugin.command = PathIn(user, plugin.command);
  }
  if (TextOf(exec, "provideClusterInfo") == "true") {
    plugin.cluster_json = ClusterJson(cluster);
  }
  for (const YAML::Node& argument : ChildOf(exec, "args")) {
    plugin.arguments.push_back(argument.IsScalar() ? argument.Scalar() : std::string());
  }
  for (const YAML::Node& variable : ChildOf(exec, "env")) {
    plugin.environment[TextOf(variable, "name")] = TextOf(variable, "value");
  }
  return MakeExecSource(std::move(plugin));
}

Result<std::vector<ConfigFile>> Load(const std::vector<std::string>& paths) {
  std::vector<ConfigFile> files;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(const std::string text, ReadCredentialFile(path));
    files.push_back({path, YAML::Load(text)});
    if (!files.back().root.IsMap()) {
      return InvalidArgument(fmt::format("{} is not a kubeconfig", path));
    }
  }
  if (files.empty()) {
    return InvalidArgument("no kubeconfig is given");
  }
  return files;
}

Result<std::unique_ptr<Credentials>> Read(const std::vector<std::string>& paths,
                                          std::string context, const Clock& clock) {
  ASSIGN_OR_RETURN(const std::vector<ConfigFile> files, Load(paths));
  for (size_t i = 0; context.empty() && i < files.size(); ++i) {
    context = TextOf(files[i].root, "current-context");
  }
  if (context.empty()) {
    return InvalidArgument(fmt::format("{} names no current-context", paths[0]))
        .Hint("kubectl config use-context NAME, or name one");
  }
  ASSIGN_OR_RETURN(const Entry chosen, Find(files, "contexts", "context", context));
  ASSIGN_OR_RETURN(const Entry place,
                   Find(files, "clusters", "cluster", TextOf(chosen.node, "cluster")));
  ASSIGN_OR_RETURN(Entry user, Find(files, "users", "user", TextOf(chosen.node, "user")));
  Cluster cluster;
  cluster.url = TextOf(place.node, "server");
  while (cluster.url.ends_with('/')) {
    cluster.url.pop_back();
  }
  if (!cluster.url.starts_with("https://") && !cluster.url.starts_with("http://")) {
    return InvalidArgument(fmt::format("server of {} is not an https URL", place.where));
  }
  ASSIGN_OR_RETURN(cluster.ca_pem, PemOf(place, "certificate-authority"));
  cluster.server_name = TextOf(place.node, "tls-server-name");
  cluster.proxy = TextOf(place.node, "proxy-url");
  cluster.unverified = TextOf(place.node, "insecure-skip-tls-verify") == "true";
  std::string own = TextOf(chosen.node, "namespace");
  ASSIGN_OR_RETURN(std::unique_ptr<LoginSource> source, SourceOf(std::move(user), cluster));
  return std::make_unique<Credentials>(std::move(cluster), own.empty() ? "default" : own,
                                       std::move(source), clock);
}

}  // namespace

Result<std::unique_ptr<Credentials>> CredentialsFromKubeconfig(
    const std::vector<std::string>& files, const std::string& context, const Clock& clock) {
  try {
    return Read(files, context, clock);
  } catch (const YAML::Exception& error) {
    return InvalidArgument(fmt::format("the kubeconfig is not YAML: {}", error.what()));
  }
}

}  // namespace sluice::k8s
