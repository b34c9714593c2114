#include <unistd.h>

#include "base/guarded.h"
#include "catalog/data_source.h"
#include "server/commands.h"
#include "server/config/signals.h"
#include "server/config/terminal.h"
#include "server/shell/shell.h"

namespace sluice::server {

int RunLoad(const Config& config, const LoadOptions& options) {
  if (config.source.empty()) {
    Say("sluice: where to? Give --source sqlite:my.db (or postgresql://user@host/database)\n");
    return kExitUsage;
  }
  Interrupts interrupts;
  const auto source = catalog::OpenDataSource(config.source);
  if (!source.ok()) {
    SayError(source.status(), "");
    return kExitStatementFailed;
  }
  Screen screen;
  screen.err_columns = TerminalColumns(STDERR_FILENO);
  ShellSink sink({}, screen);
  Status status = Guarded("loading a file", [&] {
    return LoadTable(options, **source, interrupts.BeginScript(), sink);
  });
  interrupts.EndScript();
  const Status output = sink.Finish();
  status = status.ok() ? output : status;
  if (!status.ok()) {
    SayError(status, "");
    return kExitStatementFailed;
  }
  return kExitOk;
}

}  // namespace sluice::server
