#include <cstdio>

#include "catalog/store/adoption.h"
#include "server/commands.h"
#include "server/config/terminal.h"
#include "server/gateway/gateway.h"
#include "server/shell/shell.h"

namespace sluice::server {

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
