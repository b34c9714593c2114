#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/status.h"
#include "server/shell/script.h"
#include "server/shell/shell_sink.h"
#include "server/statements/session.h"

namespace sluice::executor {
class ResultSink;
}

namespace sluice::server {

class Interrupts;
struct LoadOptions;

// Runs a script, in this process or on a gateway.
using ScriptRunner = std::function<Status(const std::string& script, std::stop_token stop,
                                          executor::ResultSink& sink)>;
// Loads a file into a table.
using LoadRunner = std::function<Status(const LoadOptions& load, std::stop_token stop,
                                        executor::ResultSink& sink)>;

// The connection of a shell.
struct ShellConnection {
  ScriptRunner run;
  LoadRunner load;                                // empty: files are sent as scripts
  std::function<void(CopyInput)> set_copy_input;  // empty: there is no COPY FROM STDIN
};

struct ShellOptions {
  Display display;
  std::string history_file;  // "" keeps none
  std::string greeting;      // printed at the start of an interactive session
  std::string pager;         // command that shows output longer than the terminal; "": none
};

// Exit codes of `sluice`.
inline constexpr int kExitOk = 0;
inline constexpr int kExitStatementFailed = 1;
inline constexpr int kExitUsage = 2;
// Standard output was closed (`| head`): the code that a shell reports for a program ended by
// SIGPIPE; psql ends the same way.
inline constexpr int kExitOutputClosed = 141;

// For -c, -f and piped input: runs the scripts one after another until one fails. Returns the exit
// code.
int RunScripts(const std::vector<Script>& scripts, const ShellConnection& connection,
               const ShellOptions& options, Interrupts& interrupts);

// At a terminal: reads statements (over several lines, with history and completion) and commands
// (\?), runs each, and continues after errors. Ends at Ctrl-D, \q, "exit" or SIGTERM. Returns the
// exit code.
int RunInteractive(const ShellConnection& connection, const ShellOptions& options,
                   Interrupts& interrupts);

}  // namespace sluice::server
