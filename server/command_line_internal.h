#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "executor/processes/child_process.h"
#include "server/commands.h"
#include "server/config/config.h"
#include "server/statements/statement_form.h"

// The command line of `sluice`, described to CLI11: part of the program, not of the library.
namespace sluice::server {

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
  std::string adopting_role;  // of setup
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

// Each of these describes subcommands, and stores the work of the given one in `line.run`.
void AddShell(CLI::App& app, CommandLine& line);           // sql
void AddDoors(CLI::App& app, CommandLine& line);           // serve, setup, password
void AddTables(CLI::App& app, CommandLine& line);          // sample, load
void AddModels(CLI::App& app, CommandLine& line);          // model
void AddKubernetes(CLI::App& app, CommandLine& line);      // controller, k8s
void AddStatementForms(CLI::App& app, CommandLine& line);  // train, predict, evaluate
void AddFleetProcesses(CLI::App& app, CommandLine& line);  // master, worker, ps, job, desk
void AddCompletion(CLI::App& app, CommandLine& line);      // completion

// A flag that overrides the configuration's `key`.
void AddConfigFlag(CLI::App& command, const char* flag, const char* key, const char* doc,
                   CommonFlags& common);
void AddConfigFile(CLI::App& command, CommonFlags& common);
void AddLog(CLI::App& command, CommonFlags& common);
// --config, --source and what else every command that works with a data source takes.
void AddCommon(CLI::App& command, CommonFlags& common);
// Of commands in whose process statements train.
void AddPython(CLI::App& command, CommonFlags& common);
void AddTrainingFlags(CLI::App& command, CommonFlags& common);
void AddFormat(CLI::App& command, std::string& format);

// Loads the configuration, starts the log, then calls the function. Returns its exit code, or that
// of a wrong configuration.
int WithConfig(const CommonFlags& common, const std::function<int(const Config&)>& command);

}  // namespace sluice::server
