#include "server/statements/session.h"

#include <fmt/core.h>

#include "base/machine.h"
#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "executor/cluster.h"
#include "parser/keywords.h"

namespace sluice::server {
namespace {
constexpr const char* kMessages = "client_min_messages";
}  // namespace

Session::Session(catalog::DataSource& source, catalog::Catalog& catalog, std::string user,
                 executor::Cluster* cluster)
    : source_(source),
      catalog_(catalog),
      acts_in_(&catalog),
      user_(std::move(user)),
      cluster_(cluster) {
  planner_options_.memory_bytes = cluster != nullptr ? cluster->memory_bytes() : MachineMemory();
  planner_options_.model_types = &catalog.model_types();
  planner_options_.user_role = catalog.principal().role;
  planner_options_.pods = cluster != nullptr && cluster->is_elsewhere();
  planner_options_.local_cpus = static_cast<int>(MachineProcessors());
  for (const SettingSpec& setting : Settings()) {
    defaults_.push_back(setting.current(planner_options_, settings_));
  }
}

Status Session::TakeActingRole() {
  ASSIGN_OR_RETURN(const std::string role, source_.ActingRole(stop_));
  return ActAs(role);
}

Status Session::TakeActingRoleOfSession() {
  if (!database_session_.has_value()) {
    return TakeActingRole();
  }
  ASSIGN_OR_RETURN(const std::string role, source_.ActingRoleIn(*database_session_, stop_));
  return ActAs(role);
}

Status Session::ActAs(const std::string& role) {
  if (role == acts_in_->principal().role) {
    return OkStatus();
  }
  if (role == catalog_.principal().role) {
    acts_in_ = &catalog_;
  } else {
    std::unique_ptr<catalog::Catalog>& other = catalogs_[role];
    if (other == nullptr) {
      other = catalog_.For({role});
    }
    acts_in_ = other.get();
  }
  planner_options_.model_types = &acts_in_->model_types();
  planner_options_.user_role = role;
  return TakeFoldersOfRole();
}

Status Session::KeepFilesByRole(std::string checkpoint_root, std::string export_root) {
  files_by_role_ = true;
  checkpoint_roots_ = std::move(checkpoint_root);
  export_roots_ = std::move(export_root);
  return TakeFoldersOfRole();
}

Status Session::TakeFoldersOfRole() {
  if (!files_by_role_) {
    return OkStatus();
  }
  const bool any = !checkpoint_roots_.empty() || !export_roots_.empty();
  ASSIGN_OR_RETURN(const std::string id, any ? acts_in_->PrincipalId() : std::string());
  const auto folder = [&id](const std::string& root) {
    return root.empty() || id.empty() ? root : fmt::format("{}/role-{}", root, id);
  };
  KeepCheckpointsIn(folder(checkpoint_roots_));
  KeepModelFilesIn(folder(export_roots_));
  return OkStatus();
}

Status Session::Set(const parser::Name& name, const parser::AttributeValue& value) {
  ASSIGN_OR_RETURN(const SettingSpec* setting, FindSetting(name));
  const auto* word = std::get_if<parser::AttributeValue::Word>(&value.value);
  int64_t read = defaults_[static_cast<size_t>(setting - Settings().data())];
  if (word == nullptr || !parser::SameWord(word->text, "DEFAULT")) {
    ASSIGN_OR_RETURN(read, ReadSettingValue(*setting, value));
  }
  setting->apply(read, planner_options_, settings_);
  return OkStatus();
}

void Session::ResetSettings() {
  for (size_t i = 0; i < defaults_.size(); ++i) {
    Settings()[i].apply(defaults_[i], planner_options_, settings_);
  }
}

std::string Session::Shown(const SettingSpec& setting) const {
  return SettingText(setting, setting.current(planner_options_, settings_));
}

std::vector<std::string> Session::NamesOfDatabaseSettings() {
  std::vector<std::string> names = {kMessages};
  for (const SettingSpec& setting : Settings()) {
    names.push_back(setting.name);
  }
  return names;
}

Status Session::TakeDatabaseSettings(const catalog::DataSource::SettingValues& values) {
  for (const auto& [name, value] : values) {
    if (name == kMessages) {
      settings_.quiet = value == "warning" || value == "error";
      continue;
    }
    parser::Name setting;
    setting.text = name;
    parser::AttributeValue text;
    text.value = value;
    RETURN_IF_ERROR(Set(setting, text));
  }
  if (hear_) {
    hear_(settings_);
  }
  return OkStatus();
}

}  // namespace sluice::server
