#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "k8s/credentials.h"

namespace sluice::k8s {

// Tokens and certificates in files are changed by other programs.
inline constexpr double kReadAgainSeconds = 60;
// Of a kubeconfig, a token, a certificate or the output of an exec plug-in.
inline constexpr size_t kMaxCredentialBytes = size_t{1} << 20;

Result<std::string> ReadCredentialFile(const std::string& path);
// Without white space at both ends; an error if nothing is left.
Result<std::string> ReadTokenFile(const std::string& path);
Result<std::string> DecodeBase64(std::string_view text, std::string_view what);

// A client-go credential plug-in: a program that prints an ExecCredential.
struct ExecPlugin {
  std::string api_version;
  std::string command;  // a path, or a name to be found in PATH
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;  // in addition to our own
  std::string install_hint;
  std::string cluster_json;  // provideClusterInfo; empty: not requested
};
std::unique_ptr<LoginSource> MakeExecSource(ExecPlugin plugin);

}  // namespace sluice::k8s
