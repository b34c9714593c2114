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

Status WriteInto(const std::filesystem::path& folder, const std::vector<k8s::Manifest>& files) {
  for (const k8s::Manifest& each : files) {
    std::error_code error;
    std::filesystem::create_directories(folder / each.folder, error);
    if (error) {
      return FailedPrecondition(fmt::format("cannot make the folder {}: {}",
                                            (folder / each.folder).string(), error.message()));
    }
    RETURN_IF_ERROR(WriteText(folder / each.folder / each.file, each.yaml));
  }
  return OkStatus();
}

Status PrintOrWrite(const K8sManifestOptions& options) {
  RETURN_IF_ERROR(planner::PodsAllowed::Read(options.pods_allow).status());
  const k8s::ManifestOptions wanted = {
      options.namespace_name,
      options.image.empty() ? fmt::format("sluice:{}", kVersion) : options.image,
      options.pods_allow, !options.without_rules};
  if (options.charts) {
    if (options.folder.empty()) {
      return InvalidArgument("--charts needs a folder: --into");
    }
    ASSIGN_OR_RETURN(const std::vector<k8s::Manifest> charts, k8s::BuildCharts(wanted, kVersion));
    return WriteInto(options.folder, charts);
  }
  ASSIGN_OR_RETURN(std::vector<k8s::Manifest> manifests, k8s::BuildManifests(wanted));
  if (options.folder.empty()) {
    for (size_t i = 0; i < manifests.size(); ++i) {
      fmt::print("{}{}", i == 0 ? "" : "---\n", manifests[i].yaml);
    }
    return OkStatus();
  }
  for (const char* base : {k8s::kClusterBase, k8s::kGatewayBase}) {
    manifests.push_back({base, "kustomization.yaml", k8s::Kustomization(manifests, base)});
  }
  return WriteInto(options.folder, manifests);
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
