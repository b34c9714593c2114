#include <fmt/core.h>

#include <cstdio>

#include "server/commands.h"
#include "server/gateway.h"
#include "server/shell.h"
#include "server/signals.h"

namespace sluice::server {

int RunServe(const Config& config) {
  if (config.source.empty()) {
    fmt::print(stderr,
               "sluice: which database? Give --source sqlite:my.db or "
               "postgresql://user@host/database\n");
    return kExitUsage;
  }
  auto gateway = Gateway::Start(config);
  if (!gateway.ok()) {
    fmt::print(stderr, "{}", RenderWithCaret(gateway.status(), ""));
    return kExitStatementFailed;
  }
  if (config.tls_cert.empty() && config.grpc.rfind("127.", 0) != 0 &&
      config.grpc.rfind("localhost:", 0) != 0 && config.grpc.rfind("[::1]:", 0) != 0) {
    fmt::print(stderr,
               "WARNING: whoever reaches {} can use the database, and reads along: nobody is asked "
               "for a password, and without --tls-cert nothing is encrypted\n",
               (*gateway)->address());
  }
  fmt::print("gRPC on {}\n", (*gateway)->address());
  std::fflush(stdout);
  WaitForTermination();
  (*gateway)->Shutdown();
  return kExitOk;
}

}  // namespace sluice::server
