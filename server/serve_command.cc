#include <fmt/core.h>
#include <unistd.h>

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
  if (geteuid() == 0) {
    Say("WARNING: this gateway runs as root, and so do its jobs; run it as a user of its own\n");
  }
  if (!config.pg.empty() && !IsLocalAddress(config.pg) && (*gateway)->auth() == Auth::kTrust) {
    Say(
        fmt::format("WARNING: anyone who reaches {} can use it as any role that the database lets "
                    "in from this machine\n",
                    (*gateway)->pg_address()));
  }
  if (!IsLocalAddress(config.grpc)) {
    if ((*gateway)->auth() == Auth::kTrust) {
      Say(
          fmt::format("WARNING: anyone who reaches {} can use the database: no password is asked "
                      "for\n",
                      (*gateway)->address()));
    }
    if (config.tls_cert.empty()) {
      Say(fmt::format("WARNING: without --tls-cert nothing is encrypted on {}{}\n",
                      (*gateway)->address(),
                      (*gateway)->auth() == Auth::kTrust
                          ? ""
                          : ", and passwords are accepted from this machine only"));
    }
  }
  std::fputs(fmt::format("gRPC on {}\n", (*gateway)->address()).c_str(), stdout);
  if (!(*gateway)->pg_address().empty()) {
    const std::string& fingerprint = (*gateway)->pg_fingerprint();
    std::fputs(fmt::format("PostgreSQL on {}{}{}\n", (*gateway)->pg_address(),
                           fingerprint.empty() ? "" : ", certificate SHA-256 ", fingerprint)
                   .c_str(),
               stdout);
  }
  std::fflush(stdout);
  WaitForTermination();
  (*gateway)->Shutdown();
  return kExitOk;
}

}  // namespace sluice::server
