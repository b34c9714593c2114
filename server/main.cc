#include <fmt/core.h>

#include <sys/prctl.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/guarded.h"
#include "base/log.h"
#include "catalog/source_url.h"
#include "executor/pods/pod_process.h"
#include "executor/processes/child_process.h"
#include "server/commands.h"
#include "server/config/config.h"
#include "server/config/descriptor_limit.h"
#include "server/config/signals.h"
#include "server/config/terminal.h"
#include "server/config/version.h"
#include "server/pgwire/ticket_desk.h"
#include "server/shell/shell.h"
#include "server/statements/statement_form.h"

// The command line. Each Add... describes one subcommand and stores its work in `run` if it is the
// one given.
namespace sluice::server {
namespace {

// Options of several subcommands; `values` override configuration file and environment.
struct CommonFlags {
  std::string config_file;
  ConfigValues values;
};

// All options of the command line, filled in by CLI11; `run` is the given subcommand.
struct CommandLine {
  CommonFlags common;
  SqlOptions sql;
  bool print_config = false;
  PasswordOptions password;
  SampleOptions sample;
  LoadOptions load;
  ModelPushOptions push;
  K8sManifestOptions manifests;
  std::string separator;  // of load
  TrainForm train;
  PredictForm predict;
  EvaluateForm evaluate;
  std::string format = "table";  // of train, predict and evaluate
  std::function<int()> run;
  std::optional<elastic::Role> fleet_role;  // set instead of `run`
  std::vector<std::string> pod_place;       // of a fleet's process in a pod: PodPlace
};

void AddConfigFlag(CLI::App& command, const char* flag, const char* key, const char* doc,
                   CommonFlags& common) {
  command.add_option_function<std::string>(
      flag, [&common, key](const std::string& value) { common.values.emplace_back(key, value); },
      doc);
}

void AddCommon(CLI::App& command, CommonFlags& common) {
  command.add_option("--config", common.config_file, "file of 'key = value' lines");
  AddConfigFlag(command, "--source,-d,--datasource", "source",
                "sqlite:PATH or postgresql://user@host:port/database", common);
  AddConfigFlag(command, "--source-file", "source_file",
                "file that holds the source, which keeps its password secret", common);
  AddConfigFlag(command, "--log-level", "log_level", "debug, info, warn (default), error or off",
                common);
  AddConfigFlag(command, "--user", "user",
                "user who logs in to a gateway and owns the jobs (default: $PGUSER, $USER)",
                common);
}

void AddTrainingFlags(CLI::App& command, CommonFlags& common) {
  AddConfigFlag(
      command, "--checkpoint-root", "checkpoint_root",
      "engine.checkpoint_dir names a folder in this one (a gateway without it keeps none)", common);
  AddConfigFlag(command, "--python", "python",
                "Python with torch 1.13 or later, for model types (/usr/bin/python3)", common);
  AddConfigFlag(command, "--slots", "slots",
                "processors that the workers of all jobs may take (0: the machine's)", common);
  AddConfigFlag(command, "--memory-limit", "memory_limit",
                "MiB that their processes may take (0: the machine's)", common);
  AddConfigFlag(command, "--cluster", "cluster",
                "where trainings on many processes run: local (this machine) or kubernetes (pods)",
                common);
  AddConfigFlag(command, "--pods-image", "pods_image", "the image of those pods", common);
  AddConfigFlag(command, "--pods-namespace", "pods_namespace",
                "their namespace (else our own, or the kubeconfig's)", common);
  AddConfigFlag(command, "--pods-template", "pods_template",
                "file with the pod template that they are made in (JSON)", common);
  AddConfigFlag(command, "--pods-priority-class", "pods_priority_class",
                "their PriorityClass without engine.priority (else the template's)", common);
}

void AddFormat(CLI::App& command, std::string& format) {
  command.add_option("--format", format, "how rows are printed")
      ->check(CLI::IsMember({"table", "csv", "json"}))
      ->capture_default_str();
}

// Loads the configuration, starts the log, then calls the function.
int WithConfig(const CommonFlags& common, const std::function<int(const Config&)>& command) {
  const auto config = LoadConfig(common.config_file, common.values);
  if (!config.ok()) {
    SayError(config.status(), "");
    return kExitUsage;
  }
  log::Level level = log::Level::kWarn;
  level = config->log_level == "debug"   ? log::Level::kDebug
          : config->log_level == "info"  ? log::Level::kInfo
          : config->log_level == "error" ? log::Level::kError
          : config->log_level == "off"   ? log::Level::kOff
                                         : level;
  log::Start("sluice", level);
  const Status descriptors = RaiseDescriptorLimit();
  if (!descriptors.ok()) {
    SayError(descriptors, "");
    return kExitStatementFailed;
  }
  return command(*config);
}

// -c and -f in the order in which they were given.
Status CollectScripts(const CLI::App& command, SqlOptions& options) {
  std::map<const CLI::Option*, size_t> taken;
  for (const CLI::Option* option : command.parse_order()) {
    const size_t next = taken[option]++;
    if (option->get_name() == "--command") {
      options.scripts.push_back({option->results().at(next)});
    } else if (option->get_name() == "--file") {
      ASSIGN_OR_RETURN(Script script, ReadScript(option->results().at(next)));
      options.scripts.push_back(std::move(script));
    }
  }
  options.from_input = options.scripts.empty();
  return OkStatus();
}

void AddSql(CLI::App& app, CommandLine& line) {
  CLI::App* sql = app.add_subcommand("sql", "Shell and batch: run statements");
  AddCommon(*sql, line.common);
  sql->add_option("--gateway", line.sql.gateway,
                  "HOST:PORT of a running gateway; sluice://USER@HOST:PORT logs in as that user");
  sql->add_option("--gateway-ca", line.sql.gateway_ca, "PEM file: talk TLS to the gateway");
  AddTrainingFlags(*sql, line.common);
  sql->add_option("-c,-e,--command", "run these statements (may be repeated)")->take_all();
  sql->add_option("-f,--file", "run this file; - is standard input (may be repeated)")->take_all();
  AddFormat(*sql, line.sql.format);
  sql->callback([sql, &line] {
    line.run = [sql, &line] {
      const Status status = CollectScripts(*sql, line.sql);
      if (!status.ok()) {
        SayError(status, "");
        return kExitUsage;
      }
      return WithConfig(line.common,
                        [&line](const Config& config) { return RunSql(config, line.sql); });
    };
  });
}

void AddServe(CLI::App& app, CommandLine& line) {
  CLI::App* serve = app.add_subcommand("serve", "Gateway: statements over gRPC");
  AddCommon(*serve, line.common);
  AddConfigFlag(*serve, "--grpc", "grpc", "HOST:PORT to listen on (127.0.0.1:50051; port 0: any)",
                line.common);
  AddConfigFlag(*serve, "--pg", "pg",
                "HOST:PORT to listen on for PostgreSQL's clients, /FOLDER:PORT for a Unix socket",
                line.common);
  AddConfigFlag(*serve, "--metrics", "metrics",
                "HOST:PORT where Prometheus reads GET /metrics (nowhere)", line.common);
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
  CLI::App* setup = app.add_subcommand(
      "setup", "Print what a superuser runs in the database for a gateway with --auth scram");
  AddCommon(*setup, line.common);
  setup->callback([&line] { line.run = [&line] { return WithConfig(line.common, RunSetup); }; });
}

void AddPassword(CLI::App& app, CommandLine& line) {
  CLI::App* password = app.add_subcommand(
      "password", "Give a user a password, for a gateway over SQLite: asks twice, or reads a line");
  password->add_option("--config", line.common.config_file, "file of 'key = value' lines");
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

void AddSample(CLI::App& app, CommandLine& line) {
  CLI::App* sample = app.add_subcommand("sample", "Make a table of sample data of any size");
  sample->add_option("kind", line.sample.kind, "what kind of data")
      ->check(CLI::IsMember({"census", "clicks"}))
      ->required();
  sample->add_option("--rows", line.sample.rows, "how many")
      ->check(CLI::PositiveNumber)
      ->required();
  auto* const into = sample->add_option("--into", line.sample.into,
                                        "data source: sqlite:PATH or postgresql://...");
  sample->add_option("--into-file", line.sample.into_file, "file that holds the data source")
      ->excludes(into);
  sample->add_option("--table", line.sample.table, "name of the table (default: the kind)");
  sample->add_option("--seed", line.sample.seed, "the same seed makes the same rows")
      ->capture_default_str();
  sample->add_flag("--replace", line.sample.replace, "drop an existing table of that name first");
  sample->callback([&line] { line.run = [&line] { return RunSample(line.sample); }; });
}

void AddModel(CLI::App& app, CommandLine& line) {
  CLI::App* model = app.add_subcommand("model", "Model types of your own");
  model->require_subcommand(1);
  CLI::App* push = model->add_subcommand("push", "A file becomes a model type");
  AddCommon(*push, line.common);
  push->add_option("file", line.push.file, "net.onnx, net.json of Keras's to_json(), or net.py:Class of PyTorch")
      ->required();
  push->add_option("--name", line.push.name, "of the type (default: that of the class or the file)");
  push->add_flag("--replace", line.push.replace, "a further version of a type that is there");
  push->add_option("--gateway", line.push.gateway,
                   "HOST:PORT of a running gateway; sluice://USER@HOST:PORT logs in as that user");
  push->add_option("--gateway-ca", line.push.gateway_ca, "PEM file: talk TLS to the gateway");
  push->callback([&line] {
    line.run = [&line] {
      return WithConfig(line.common,
                        [&line](const Config& config) { return RunModelPush(config, line.push); });
    };
  });
}

void AddLoad(CLI::App& app, CommandLine& line) {
  CLI::App* load = app.add_subcommand("load", "Bring a CSV file into a table");
  AddCommon(*load, line.common);
  load->add_option("file", line.load.file, "UTF-8, RFC 4180; - is standard input")->required();
  load->add_option("table", line.load.table, "new table; types are inferred from all rows")
      ->required();
  load->add_flag("--append", line.load.append,
                 "append to an existing table, by the names in the header");
  load->add_flag_callback(
      "--no-header", [&line] { line.load.has_header = false; }, "the first line is a row");
  load->add_option("--separator", line.separator,
                   "one character, or tab (default: , ; tab or |, as in the first line)");
  load->add_option("--null", line.load.null_text, "text that means NULL, as an empty field does");
  load->callback([&line] {
    line.run = [&line] {
      if (line.separator.size() == 1 && line.separator != "\"" && line.separator != "\n") {
        line.load.separator = line.separator.front();
      } else if (line.separator == "tab" || line.separator == "\\t") {
        line.load.separator = '\t';
      } else if (!line.separator.empty()) {
        SayError(
            InvalidArgument(fmt::format("--separator is one character, not '{}'", line.separator)),
            "");
        return kExitUsage;
      }
      return WithConfig(line.common,
                        [&line](const Config& config) { return RunLoad(config, line.load); });
    };
  });
}

void AddK8s(CLI::App& app, CommandLine& line) {
  CLI::App* k8s = app.add_subcommand("k8s", "Training on Kubernetes");
  k8s->require_subcommand(1);
  CLI::App* manifests = k8s->add_subcommand(
      "manifests", "Print what a cluster needs: TrainingJob, accounts, classes, gateway");
  line.manifests.namespace_name = "sluice";
  manifests->add_option("--namespace", line.manifests.namespace_name, "of all of it")
      ->capture_default_str();
  manifests->add_option("--image", line.manifests.image, "of every pod (default: sluice:VERSION)");
  manifests->add_option("--into", line.manifests.folder,
                        "write a base of kustomize into this folder instead");
  manifests->callback([&line] { line.run = [&line] { return RunK8sManifests(line.manifests); }; });
}

void AddController(CLI::App& app, CommandLine& line) {
  CLI::App* controller = app.add_subcommand(
      "controller", "Shares a Kubernetes cluster's idle capacity among all TrainingJobs");
  controller->add_option("--config", line.common.config_file, "file of 'key = value' lines");
  AddConfigFlag(*controller, "--namespace", "pods_namespace",
                "of its Lease (else our own, or the kubeconfig's)", line.common);
  AddConfigFlag(*controller, "--metrics", "metrics",
                "HOST:PORT where Prometheus reads GET /metrics (nowhere)", line.common);
  AddConfigFlag(*controller, "--log-level", "log_level",
                "debug, info, warn (default), error or off", line.common);
  controller->callback([&line] {
    line.run = [&line] {
      return WithConfig(line.common, [](const Config& config) { return RunController(config); });
    };
  });
}

// Runs a statement that was built from flags.
int RunForm(const CommonFlags& common, const Result<std::string>& statement,
            const std::string& format) {
  if (!statement.ok()) {
    SayError(statement.status(), "");
    return kExitUsage;
  }
  return WithConfig(common, [&](const Config& config) {
    return RunStatementCommand(config, *statement, format);
  });
}

// A model definition that is a file becomes a model type first.
int RunTrainForm(const Config& config, TrainForm form, const std::string& format) {
  if (!ModelLanguageOf(form.model_def).empty()) {
    const int pushed = RunModelPush(config, {form.model_def, "", true, "", ""});
    if (pushed != kExitOk) {
      return pushed;
    }
    form.model_def = ModelTypeNameOf(form.model_def);
  }
  const Result<std::string> statement = TrainStatementText(form);
  if (!statement.ok()) {
    SayError(statement.status(), "");
    return kExitUsage;
  }
  return RunStatementCommand(config, *statement, format);
}

void AddTrain(CLI::App& app, CommandLine& line) {
  CLI::App* train = app.add_subcommand("train", "Command-line form of TO TRAIN");
  AddCommon(*train, line.common);
  AddFormat(*train, line.format);
  train->add_option(
      "--model_def", line.train.model_def,
      "model type, or a file that is one: net.onnx, net.json, net.py:Class (default: chosen)");
  train->add_option("--model_params", line.train.model_params,
                    "\"hidden_units=[64,32]; n_classes=3\"");
  train->add_option("--training_data", line.train.training_data, "table or SELECT")->required();
  train->add_option("--validation_data", line.train.validation_data, "table or SELECT");
  train->add_option("--label", line.train.label, "column to learn")->required();
  train->add_option("--output", line.train.output, "model to make")->required();
  train->add_option("--base", line.train.base, "model to continue from");
  train->add_option("--num_epochs", line.train.num_epochs, "passes over the data");
  train->add_option("--minibatch_size", line.train.minibatch_size, "rows in a step");
  train->add_option("--max_step", line.train.max_step, "steps at most");
  train->add_option("--num_workers", line.train.num_workers, "worker processes");
  train->add_option("--num_ps_pods", line.train.num_ps_pods, "parameter server processes");
  train->callback([&line] {
    line.run = [&line] {
      return WithConfig(line.common, [&line](const Config& config) {
        return RunTrainForm(config, line.train, line.format);
      });
    };
  });
}

void AddOutputTable(CLI::App& app, OutputForm& form) {
  CLI::Option* replace = app.add_flag(
      "--replace", form.replace,
      "the output may replace a table of other columns, or one that Sluice did not write");
  app.add_flag("--append", form.append, "add the rows to the output's table")->excludes(replace);
}

void AddPredict(CLI::App& app, CommandLine& line) {
  CLI::App* predict = app.add_subcommand("predict", "Command-line form of TO PREDICT");
  AddCommon(*predict, line.common);
  AddFormat(*predict, line.format);
  predict->add_option("--model", line.predict.model, "model to use")->required();
  predict->add_option("--prediction_data", line.predict.prediction_data, "table or SELECT")
      ->required();
  predict->add_option("--output", line.predict.output, "table.column (default: rows are printed)");
  AddOutputTable(*predict, line.predict.output_table);
  predict->callback([&line] {
    line.run = [&line] {
      return RunForm(line.common, PredictStatementText(line.predict), line.format);
    };
  });
}

void AddEvaluate(CLI::App& app, CommandLine& line) {
  CLI::App* evaluate = app.add_subcommand("evaluate", "Command-line form of TO EVALUATE");
  AddCommon(*evaluate, line.common);
  AddFormat(*evaluate, line.format);
  evaluate->add_option("--model", line.evaluate.model, "model to evaluate")->required();
  evaluate->add_option("--validation_data", line.evaluate.validation_data, "table or SELECT")
      ->required();
  evaluate->add_option("--label", line.evaluate.label,
                       "column to compare with (default: the model's)");
  evaluate->add_option("--output", line.evaluate.output, "table for the metrics");
  AddOutputTable(*evaluate, line.evaluate.output_table);
  evaluate->callback([&line] {
    line.run = [&line] {
      return RunForm(line.common, EvaluateStatementText(line.evaluate), line.format);
    };
  });
}

// A fleet starts these; they read their configuration from an inherited descriptor.
void AddFleetProcesses(CLI::App& app, CommandLine& line) {
  for (const elastic::Role role :
       {elastic::Role::kMaster, elastic::Role::kWorker, elastic::Role::kParameterServer}) {
    CLI::App* const command = app.add_subcommand(std::string(elastic::RoleName(role)),
                                                 "Part of a running job; a fleet starts it");
    command->add_option("place", line.pod_place, "of a pod: FOLDER ADDRESS NODE NUMBER")
        ->expected(4);
    command->callback([role, &line] { line.fleet_role = role; });
  }
  app.add_subcommand("job", "A statement's job in a process of its own")
      ->group("")
      ->callback([&line] { line.run = [] { return executor::RunDetachedJob(); }; });
  app.add_subcommand("desk", "Logs in for the processes of jobs; a gateway starts it")
      ->group("")
      ->callback([&line] { line.run = [] { return pgwire::RunTicketDesk(); }; });
}

// SQL may hold secrets, such as the password in ALTER ROLE. Returns where SQL begins in `argument`,
// which follows `option`; npos: nowhere.
size_t BeginOfSql(std::string_view option, std::string_view argument) {
  for (const std::string_view takes_sql :
       {"-c", "-e", "--command", "--training_data", "--validation_data", "--prediction_data"}) {
    const bool joined = takes_sql.starts_with("--") ? argument.starts_with(takes_sql) &&
                                                          argument.size() > takes_sql.size() &&
                                                          argument[takes_sql.size()] == '='
                                                    : argument.starts_with(takes_sql);
    if (joined && argument.size() > takes_sql.size()) {
      return takes_sql.size() + (takes_sql.starts_with("--") ? 1 : 0);
    }
    if (option == takes_sql) {
      return 0;
    }
  }
  return std::string_view::npos;
}

// Takes the command line. Every user of the machine can read a process's command line, so secrets
// in it are overwritten.
std::vector<std::string> TakeArguments(int argc, char** argv) {
  std::vector<std::string> arguments;
  for (int i = 0; i < argc; ++i) {
    arguments.emplace_back(argv[i]);
    std::string shown = catalog::WithoutSecrets(arguments.back());
    const size_t sql = i == 0 ? std::string::npos
                              : BeginOfSql(arguments[static_cast<size_t>(i) - 1], arguments.back());
    if (sql != std::string::npos) {
      shown = arguments.back().substr(0, sql) + "...";
    }
    if (shown != arguments.back()) {
      const size_t size = arguments.back().size();
      std::memset(argv[i], 0, size);
      shown.copy(argv[i], size);
    }
  }
  return arguments;
}

// Writing out the rest of standard output's buffer may fail as well.
int FinishOutput(int exit) {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) {
    return exit;
  }
  if (errno == EPIPE || exit == kExitOutputClosed) {
    return kExitOutputClosed;
  }
  if (exit == kExitOk) {
    Say(fmt::format("ERROR: cannot write the output: {}\n", std::strerror(errno)));
  }
  return exit == kExitOk ? kExitStatementFailed : exit;
}

int Main(int argc, char** argv) {
  // All of our processes hold passwords in memory: forbid other processes of the user to read it,
  // and keep it out of core files.
  prctl(PR_SET_DUMPABLE, 0);
  const std::vector<std::string> arguments = TakeArguments(argc, argv);
  CLI::App app("sluice: SELECT ... LABEL column INTO model trains a model");
  app.name("sluice");  // for the help of each command
  app.set_version_flag("--version", kVersion);
  app.require_subcommand(1);
  CommandLine line;
  AddSql(app, line);
  AddServe(app, line);
  AddSetup(app, line);
  AddPassword(app, line);
  AddSample(app, line);
  AddLoad(app, line);
  AddModel(app, line);
  AddController(app, line);
  AddK8s(app, line);
  AddTrain(app, line);
  AddPredict(app, line);
  AddEvaluate(app, line);
  AddFleetProcesses(app, line);
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
    return place.empty()
               ? executor::RunChildProcess(*line.fleet_role)
               : executor::RunPod(*line.fleet_role, {place[0], place[1], place[2], place[3]},
                                  KubernetesOfEnvironment());
  }
  BlockSignals();
  return FinishOutput(line.run());
}

}  // namespace
}  // namespace sluice::server

int main(int argc, char** argv) {
  sluice::server::UsePassiveWaiting(argv);
  const sluice::Result<int> exit = sluice::Guarded(
      "sluice", [&]() -> sluice::Result<int> { return sluice::server::Main(argc, argv); });
  if (!exit.ok()) {
    sluice::server::SayError(exit.status(), "");
    return sluice::server::kExitStatementFailed;
  }
  return *exit;
}
