#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/status.h"
#include "server/shell/output.h"

namespace sluice::executor {
class ResultSink;
}

namespace sluice::server {

class Interrupts;

// Runs a script: in this process or by a gateway.
using ScriptRunner = std::function<Status(const std::string& script, std::stop_token stop,
                                          executor::ResultSink& sink)>;

struct ShellOptions {
  OutputFormat format = OutputFormat::kTable;
  std::string history_file;  // "" keeps none
  std::string greeting;      // first line of an interactive session
};

// What `sluice` returns to its caller.
inline constexpr int kExitOk = 0;
inline constexpr int kExitStatementFailed = 1;
inline constexpr int kExitUsage = 2;
// Standard output was closed (`| head`): what a shell reports of a program that SIGPIPE ended,
// which is how psql ends there.
inline constexpr int kExitOutputClosed = 141;

// -c, -f and piped input: the scripts one after another until one fails. Returns the exit code.
int RunScripts(const std::vector<std::string>& scripts, const ScriptRunner& runner,
               const ShellOptions& options, Interrupts& interrupts);

// At a terminal: reads statements (over several lines, with history), runs each, goes on after
// errors. Ends at Ctrl-D, "exit" or SIGTERM. Returns the exit code.
int RunInteractive(const ScriptRunner& runner, const ShellOptions& options, Interrupts& interrupts);

}  // namespace sluice::server
