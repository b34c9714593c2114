#include <cstdio>

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

}  // namespace sluice::server
