#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "k8s/manifests.h"
#include "planner/pods_allowed.h"
#include "server/commands.h"
#include "server/config/terminal.h"
#include "server/config/version.h"
#include "server/shell/shell.h"

namespace sluice::server {
namespace {

Status WriteText(const std::filesystem::path& path, const std::string& text) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  return file ? OkStatus()
              : FailedPrecondition(
                    fmt::format("cannot write {}: {}", path.string(), std::strerror(errno)));
}

Status PrintOrWrite(const K8sManifestOptions& options) {
  RETURN_IF_ERROR(planner::PodsAllowed::Read(options.pods_allow).status());
  ASSIGN_OR_RETURN(const std::vector<k8s::Manifest> manifests,
                   k8s::BuildManifests(
                       {options.namespace_name,
                        options.image.empty() ? fmt::format("sluice:{}", kVersion) : options.image,
                        options.pods_allow, !options.without_rules}));
  if (options.folder.empty()) {
    for (size_t i = 0; i < manifests.size(); ++i) {
      fmt::print("{}{}", i == 0 ? "" : "---\n", manifests[i].yaml);
    }
    return OkStatus();
  }
  const std::filesystem::path folder = options.folder;
  for (const char* base : {k8s::kClusterBase, k8s::kGatewayBase}) {
    std::error_code error;
    std::filesystem::create_directories(folder / base, error);
    if (error) {
      return FailedPrecondition(
          fmt::format("cannot make the folder {}: {}", (folder / base).string(), error.message()));
    }
  }
  for (const k8s::Manifest& manifest : manifests) {
    RETURN_IF_ERROR(WriteText(folder / manifest.folder / manifest.file, manifest.yaml));
  }
  for (const char* base : {k8s::kClusterBase, k8s::kGatewayBase}) {
    RETURN_IF_ERROR(
        WriteText(folder / base / "kustomization.yaml", k8s::Kustomization(manifests, base)));
  }
  return OkStatus();
}

}  // namespace

int RunK8sManifests(const K8sManifestOptions& options) {
  const Status status = PrintOrWrite(options);
  if (!status.ok()) {
    SayError(status, "");
    return kExitStatementFailed;
  }
  return kExitOk;
}

}  // namespace sluice::server
