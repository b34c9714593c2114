#include <fmt/core.h>
#include <unistd.h>

#include "catalog/catalog.h"
#include "catalog/client_login.h"
#include "catalog/data_source.h"
#include "catalog/source_url.h"
#include "executor/local/room_server.h"
#include "server/commands.h"
#include "server/config/open_cluster.h"
#include "server/config/signals.h"
#include "server/config/terminal.h"
#include "server/config/version.h"
#include "server/gateway/gateway_client.h"
#include "server/pgwire/pod_login.h"
#include "server/shell/shell.h"
#include "server/statements/session.h"
#include "server/statements/statement.h"

namespace sluice::server {
namespace {

int Fail(const Status& status, int exit_code) {
  SayError(status, "");
  return exit_code;
}

int RunShell(const SqlOptions& options, const Config& config, const ShellConnection& connection,
             const std::string& where, Interrupts& interrupts) {
  ShellOptions shell;
  shell.display.format = ParseOutputFormat(options.format).value_or(OutputFormat::kTable);
  shell.history_file = config.history_file;
  shell.pager = config.pager;
  shell.greeting = fmt::format("sluice {} on {}", kVersion, where);
  std::vector<Script> scripts = options.scripts;
  if (options.from_input) {
    if (isatty(STDIN_FILENO) != 0) {
      return RunInteractive(connection, shell, interrupts);
    }
    auto script = ReadScript("-");
    if (!script.ok()) {
      return Fail(script.status(), kExitUsage);
    }
    scripts.push_back(std::move(*script));
  }
  return RunScripts(scripts, connection, shell, interrupts);
}

// HOST:PORT, USER@HOST:PORT, or sluice://USER:PASSWORD@HOST:PORT. A missing password is looked up
// where psql would look.
GatewayClientOptions GatewayOf(const Config& config, const SqlOptions& options) {
  constexpr std::string_view kScheme = "sluice://";
  GatewayClientOptions gateway;
  gateway.ca_file = options.gateway_ca;
  gateway.user = config.user;
  gateway.role = config.user;
  std::string_view text = options.gateway;
  if (text.starts_with(kScheme)) {
    text.remove_prefix(kScheme.size());
  }
  if (const size_t at = text.rfind('@'); at != std::string_view::npos) {
    const std::string_view login = text.substr(0, at);
    const size_t colon = login.find(':');
    gateway.role = login.substr(0, colon);
    gateway.password = colon == std::string_view::npos ? "" : login.substr(colon + 1);
    text.remove_prefix(at + 1);
  }
  gateway.address = text;
  // A password that was not given for this gateway is not sent unencrypted.
  if (gateway.password.empty() && (!gateway.ca_file.empty() || IsLocalAddress(gateway.address))) {
    const size_t colon = text.rfind(':');
    gateway.password = catalog::FindClientPassword(
        text.substr(0, colon), colon == std::string_view::npos ? "" : text.substr(colon + 1),
        "sluice", gateway.role);
  }
  return gateway;
}

int RunOnGateway(const Config& config, const SqlOptions& options, Interrupts& interrupts) {
  const GatewayClientOptions gateway = GatewayOf(config, options);
  auto client = GatewayClient::Connect(gateway);
  if (!client.ok()) {
    return Fail(client.status(), kExitStatementFailed);
  }
  ShellConnection connection;
  connection.run = [&client](const std::string& script, std::stop_token stop,
                             executor::ResultSink& sink) {
    return (*client)->Run(script, stop, sink);
  };
  return RunShell(options, config, connection, "gateway " + gateway.address, interrupts);
}

int RunOnSource(const Config& config, const SqlOptions& options, Interrupts& interrupts) {
  const auto database = catalog::OpenDatabase(config.source);
  if (!database.ok()) {
    return Fail(database.status(), kExitStatementFailed);
  }
  const auto cluster = OpenCluster(
      config, false, {},
      pgwire::PodLoginsWith(config.source, std::make_shared<const pgwire::TicketOffice>()));
  if (!cluster.ok()) {
    return Fail(cluster.status(), kExitStatementFailed);
  }
  Session session(*database->source, *database->catalog, config.user, cluster->get());
  session.set_room(executor::RoomNameOf(config.source));
  session.CompilePythonWith(config.python, false);
  if (!config.checkpoint_root.empty()) {
    session.KeepCheckpointsIn(config.checkpoint_root);
  }
  ShellConnection connection;
  connection.run = [&session](const std::string& script, std::stop_token stop,
                              executor::ResultSink& sink) {
    session.set_stop(std::move(stop));
    return RunScript(script, session, sink);
  };
  connection.set_copy_input = [&session](CopyInput input) {
    session.set_copy_input(std::move(input));
  };
  connection.load = [&database](const LoadOptions& load, const std::stop_token& stop,
                                executor::ResultSink& sink) {
    return LoadTable(load, *database->source, stop, sink);
  };
  return RunShell(options, config, connection, catalog::WithoutSecrets(database->source->url()),
                  interrupts);
}

}  // namespace

int RunSql(const Config& config, const SqlOptions& options) {
  if (options.gateway.empty() && config.source.empty()) {
    Say("sluice: where to? Give --source sqlite:my.db (or postgresql://user@host/database), or "
        "--gateway HOST:PORT\n");
    return kExitUsage;
  }
  Interrupts interrupts;
  return options.gateway.empty() ? RunOnSource(config, options, interrupts)
                                 : RunOnGateway(config, options, interrupts);
}

int RunStatementCommand(const Config& config, const std::string& statement,
                        const std::string& format) {
  Say(statement + ";\n");
  SqlOptions options;
  options.scripts = {{statement}};
  options.format = format;
  return RunSql(config, options);
}

}  // namespace sluice::server
