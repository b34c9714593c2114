#include <fmt/core.h>

#include <cstdio>

#include "server/commands.h"
#include "server/config/signals.h"
#include "server/config/terminal.h"
#include "server/gateway/gateway.h"
#include "server/shell/shell.h"

namespace sluice::server {

int RunServe(const Config& config) {
  if (config.source.empty()) {
    Say("sluice: which database? Give --source sqlite:my.db or postgresql://user@host/database\n");
    return kExitUsage;
  }
  auto gateway = Gateway::Start(config);
  if (!gateway.ok()) {
    SayError(gateway.status(), "");
    return kExitStatementFailed;
  }
  if (config.tls_cert.empty() && config.grpc.rfind("127.", 0) != 0 &&
      config.grpc.rfind("localhost:", 0) != 0 && config.grpc.rfind("[::1]:", 0) != 0) {
    Say(fmt::format(
        "WARNING: whoever reaches {} can use the database, and reads along: nobody is asked "
        "for a password, and without --tls-cert nothing is encrypted\n",
        (*gateway)->address()));
  }
  std::fputs(fmt::format("gRPC on {}\n", (*gateway)->address()).c_str(), stdout);
  if (!(*gateway)->pg_address().empty()) {
    std::fputs(fmt::format("PostgreSQL on {}\n", (*gateway)->pg_address()).c_str(), stdout);
  }
  std::fflush(stdout);
  WaitForTermination();
  (*gateway)->Shutdown();
  return kExitOk;
}

}  // namespace sluice::server
