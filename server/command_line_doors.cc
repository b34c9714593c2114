#include <CLI/CLI.hpp>
#include <cstdio>

#include "server/command_line_internal.h"
#include "server/commands.h"
#include "server/shell/shell.h"

namespace sluice::server {
namespace {

void AddServe(CLI::App& app, CommandLine& line) {
  CLI::App* serve =
      app.add_subcommand("serve", "Gateway: statements over gRPC and PostgreSQL's protocol");
  AddCommon(*serve, line.common);
  AddConfigFlag(*serve, "--grpc", "grpc", "HOST:PORT to listen on (127.0.0.1:50051; port 0: any)",
                line.common);
  AddConfigFlag(*serve, "--pg", "pg",
                "HOST:PORT to listen on for PostgreSQL's clients, /FOLDER:PORT for a Unix socket",
                line.common);
  AddConfigFlag(*serve, "--metrics", "metrics",
                "HOST:PORT where Prometheus reads GET /metrics (nowhere)", line.common);
  AddConfigFlag(*serve, "--audit", "audit",
                "file, or syslog: who did what, as lines of JSON, without which nothing runs "
                "(the log has less)",
                line.common);
  AddConfigFlag(*serve, "--tls-cert", "tls_cert", "PEM file", line.common);
  AddConfigFlag(*serve, "--tls-key", "tls_key", "PEM file", line.common);
  AddConfigFlag(*serve, "--auth", "auth",
                "password (default over PostgreSQL): users log in to the database; scram: the "
                "same, but --pg never sees a password (default over SQLite with --password-file); "
                "trust: no password; all use the gateway's login",
                line.common);
  AddConfigFlag(*serve, "--verifiers", "verifiers",
                "with --auth scram: URL of a login that reads the roles' SCRAM verifiers "
                "(default: --source, see sluice setup)",
                line.common);
  AddConfigFlag(*serve, "--password-file", "password_file",
                "over SQLite: the users that log in (~/.sluice/passwords, see sluice password)",
                line.common);
  AddConfigFlag(*serve, "--max-statements", "max_statements", "scripts at the same time (32)",
                line.common);
  AddConfigFlag(*serve, "--write-timeout", "write_timeout",
                "seconds until a client that reads nothing is cut off (60)", line.common);
  AddConfigFlag(*serve, "--keep-jobs", "keep_jobs",
                "days or hours until a job that has ended is deleted, as 12h; 0: never (90d)",
                line.common);
  AddConfigFlag(*serve, "--databases", "databases",
                "databases of the server that have models and jobs, besides the source's own, "
                "separated by commas (all that are no templates)",
                line.common);
  AddConfigFlag(*serve, "--role-limits", "role_limits",
                "what one role may take, as sessions=40,jobs=4: sessions, jobs, statements (a "
                "minute), versions (of a model), stored (MiB of models); 0: no limit",
                line.common);
  AddConfigFlag(*serve, "--export-root", "export_root",
                "folder for the files that clients EXPORT and IMPORT models by (they cannot)",
                line.common);
  AddTrainingFlags(*serve, line.common);
  serve->add_flag_callback(
      "--python-models", [&line] { line.common.values.emplace_back("python_models", "1"); },
      "compile clients' model types in Python, with this process's rights");
  serve->add_flag("--print-config", line.print_config, "print the resulting configuration and end");
  serve->callback([&line] {
    line.run = [&line] {
      return WithConfig(line.common, [&line](const Config& config) {
        if (line.print_config) {
          std::fputs(PrintConfig(config).c_str(), stdout);
          return kExitOk;
        }
        return RunServe(config);
      });
    };
  });
}

void AddSetup(CLI::App& app, CommandLine& line) {
  CLI::App* setup = app.add_subcommand("setup",
                                       "Print what a superuser runs in the database for a gateway "
                                       "with --auth scram, or with jobs on pods");
  AddCommon(*setup, line.common);
  setup
      ->add_option("--adopt", line.adopting_role,
                   "print instead what gives this role schema sluice, which another login created")
      ->type_name("ROLE");
  setup->callback([&line] {
    line.run = [&line] {
      return WithConfig(line.common, [&line](const Config& config) {
        return line.adopting_role.empty() ? RunSetup(config) : RunAdoption(line.adopting_role);
      });
    };
  });
}

void AddPassword(CLI::App& app, CommandLine& line) {
  CLI::App* password = app.add_subcommand(
      "password", "Give a user a password, for a gateway over SQLite: asks twice, or reads a line");
  AddConfigFile(*password, line.common);
  AddConfigFlag(*password, "--password-file", "password_file",
                "file of users and password verifiers (~/.sluice/passwords)", line.common);
  password->add_option("name", line.password.name, "of the user")->required();
  password->add_flag("--remove", line.password.remove, "remove the user");
  password->callback([&line] {
    line.run = [&line] {
      return WithConfig(line.common, [&line](const Config& config) {
        return RunPassword(config, line.password);
      });
    };
  });
}

}  // namespace

void AddDoors(CLI::App& app, CommandLine& line) {
  AddServe(app, line);
  AddSetup(app, line);
  AddPassword(app, line);
}

}  // namespace sluice::server
