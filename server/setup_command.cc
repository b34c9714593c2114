#include <cstdio>

#include "catalog/store/adoption.h"
#include "catalog/store/job_logins.h"
#include "server/commands.h"
#include "server/config/terminal.h"
#include "server/pgwire/upstream.h"
#include "server/pgwire/verifiers.h"
#include "server/shell/shell.h"

namespace sluice::server {
namespace {

// What a superuser runs in the database of a gateway whose own login is an ordinary role.
Result<std::string> SetupStatements(const Config& config) {
  if (config.source.empty() || config.source.starts_with("sqlite:")) {
    return InvalidArgument("there is nothing to set up but for a PostgreSQL server")
        .Hint("give the gateway's own --source postgresql://user@host/database");
  }
  ASSIGN_OR_RETURN(const pgwire::Upstream upstream, pgwire::UpstreamOf(config.source));
  return pgwire::VerifierFunction(upstream.user) + "\n" + catalog::JobLoginFunctions(upstream.user);
}

}  // namespace

int RunSetup(const Config& config) {
  const Result<std::string> statements = SetupStatements(config);
  if (!statements.ok()) {
    SayError(statements.status(), "");
    return kExitUsage;
  }
  std::fputs(statements->c_str(), stdout);
  return kExitOk;
}

int RunAdoption(const std::string& role) {
  std::fputs(catalog::AdoptionScript(role).c_str(), stdout);
  return kExitOk;
}

}  // namespace sluice::server
