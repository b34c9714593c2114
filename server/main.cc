#include <fmt/core.h>

#include <sys/prctl.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "base/guarded.h"
#include "base/status.h"
#include "executor/pods/pod_process.h"
#include "executor/processes/child_process.h"
#include "server/command_line_internal.h"
#include "server/config/config.h"
#include "server/config/signals.h"
#include "server/config/terminal.h"
#include "server/config/version.h"
#include "server/pgwire/key_desk.h"
#include "server/process_arguments.h"
#include "server/shell/shell.h"

namespace sluice::server {
namespace {

// Writing out the rest of standard output's buffer may fail as well.
int FinishOutput(int exit) {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) {
    return exit;
  }
  if (errno == 0) {  // an earlier write failed; one more says why
    std::fputc('\n', stdout);
    std::fflush(stdout);
  }
  if (errno == EPIPE || exit == kExitOutputClosed) {
    return kExitOutputClosed;
  }
  if (exit == kExitOk) {
    Say(fmt::format("ERROR: cannot write the output: {}\n", std::strerror(errno)));
  }
  return exit == kExitOk ? kExitStatementFailed : exit;
}

int RunPod(elastic::Role role, const std::vector<std::string>& place) {
  const auto key_desk = pgwire::KeyDesk::Start();
  if (!key_desk.ok()) {
    SayError(key_desk.status(), "");
    return kExitStatementFailed;
  }
  return executor::RunPod(role, {place[0], place[1], place[2], place[3], place[4]},
                          KubernetesOfEnvironment());
}

int Main(int argc, char** argv) {
  // All of our processes hold passwords in memory: forbid other processes of the user to read it,
  // and keep it out of core files.
  prctl(PR_SET_DUMPABLE, 0);
  prctl(PR_SET_NAME, "sluice");  // also of one that was started as /proc/self/exe
  const std::vector<std::string> arguments = TakeArguments(argc, argv);
  CLI::App app("sluice: SELECT ... LABEL column INTO model trains a model");
  app.name("sluice");  // for the help of each command
  app.set_version_flag("--version", kVersion);
  app.require_subcommand(1);
  CommandLine line;
  AddShell(app, line);
  AddDoors(app, line);
  AddTables(app, line);
  AddModels(app, line);
  AddKubernetes(app, line);
  AddStatementForms(app, line);
  AddFleetProcesses(app, line);
  AddCompletion(app, line);
  try {
    // CLI11 expects them in reverse order, without the program.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend() - 1));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  if (app.got_subcommand("job") ||
      app.got_subcommand("desk")) {  // before any thread: it daemonises
    return line.run();
  }
  if (line.fleet_role) {
    const std::vector<std::string>& place = line.pod_place;
    return place.empty() ? executor::RunChildProcess(*line.fleet_role)
                         : RunPod(*line.fleet_role, place);
  }
  BlockSignals();
  return FinishOutput(line.run());
}

}  // namespace
}  // namespace sluice::server

int main(int argc, char** argv) {
  sluice::server::UsePassiveWaiting();
  const sluice::Result<int> exit = sluice::Guarded(
      "sluice", [&]() -> sluice::Result<int> { return sluice::server::Main(argc, argv); });
  if (!exit.ok()) {
    sluice::server::SayError(exit.status(), "");
    return sluice::server::kExitStatementFailed;
  }
  return *exit;
}
