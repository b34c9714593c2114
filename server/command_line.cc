#include "server/command_line_internal.h"

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "base/log.h"
#include "base/log_format.h"
#include "base/status.h"
#include "server/config/descriptor_limit.h"
#include "server/config/terminal.h"
#include "server/shell/shell.h"

namespace sluice::server {

void AddConfigFlag(CLI::App& command, const char* flag, const char* key, const char* doc,
                   CommonFlags& common) {
  command.add_option_function<std::string>(
      flag, [&common, key](const std::string& value) { common.values.emplace_back(key, value); },
      doc);
}

void AddConfigFile(CLI::App& command, CommonFlags& common) {
  command.add_option("--config", common.config_file, "file of 'key = value' lines");
}

void AddLog(CLI::App& command, CommonFlags& common) {
  AddConfigFlag(command, "--log-level", "log_level", "debug, info, warn (default), error or off",
                common);
  AddConfigFlag(command, "--log-format", "log_format", "text, or json: an object a line", common);
}

void AddCommon(CLI::App& command, CommonFlags& common) {
  AddConfigFile(command, common);
  AddConfigFlag(command, "--source,-d,--datasource", "source",
                "sqlite:PATH or postgresql://user@host:port/database", common);
  AddConfigFlag(command, "--source-file", "source_file",
                "file that holds the source, which keeps its password secret", common);
  AddLog(command, common);
  AddConfigFlag(command, "--user", "user",
                "user who logs in to a gateway and owns the jobs (default: $PGUSER, $USER)",
                common);
}

void AddPython(CLI::App& command, CommonFlags& common) {
  AddConfigFlag(command, "--python", "python",
                "Python with torch 1.13 or later, or Keras, for model types (/usr/bin/python3)",
                common);
}

void AddTrainingFlags(CLI::App& command, CommonFlags& common) {
  AddConfigFlag(
      command, "--checkpoint-root", "checkpoint_root",
      "engine.checkpoint_dir names a folder in this one (a gateway without it keeps none)", common);
  AddPython(command, common);
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
  AddConfigFlag(command, "--pods-allow", "pods_allow",
                "what a gateway's statements may put into them: template=NAME, "
                "claim=NAME:MOUNT_PATH[:SUB_PATH], ...",
                common);
}

void AddFormat(CLI::App& command, std::string& format) {
  command.add_option("--format", format, "how rows are printed")
      ->check(CLI::IsMember({"table", "csv", "json"}))
      ->capture_default_str();
}

int WithConfig(const CommonFlags& common, const std::function<int(const Config&)>& command) {
  const auto config = LoadConfig(common.config_file, common.values);
  if (!config.ok()) {
    SayError(config.status(), "");
    return kExitUsage;
  }
  const log::Level level = config->log_level == "debug"   ? log::Level::kDebug
                           : config->log_level == "info"  ? log::Level::kInfo
                           : config->log_level == "error" ? log::Level::kError
                           : config->log_level == "off"   ? log::Level::kOff
                                                          : log::Level::kWarn;
  log::WriteAs(config->log_format == "json" ? log::Format::kJson : log::Format::kText);
  log::Start("sluice", level);
  const Status descriptors = RaiseDescriptorLimit();
  if (!descriptors.ok()) {
    SayError(descriptors, "");
    return kExitStatementFailed;
  }
  return command(*config);
}

}  // namespace sluice::server
