#include "server/statements/session.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <thread>

#include "base/machine.h"
#include "catalog/data_source.h"
#include "executor/local_cluster.h"
#include "parser/printer.h"

namespace sluice::server {
namespace {

constexpr int kMostCpus = 1024;  // larger numbers are typing errors

bool EqualIgnoringCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  });
}

}  // namespace

const std::vector<SettingSpec>& Settings() {
  static const std::vector<SettingSpec> settings = {
      {"sluice.seed", 0, std::numeric_limits<int64_t>::max(),
       "seed of trainings that give none (engine.seed overrules)",
       [](int64_t value, planner::Options& options) {
         options.default_seed = static_cast<uint64_t>(value);
       }},
      {"sluice.local_cpus", 1, kMostCpus, "processors that plans of this session may count on",
       [](int64_t value, planner::Options& options) {
         options.local_cpus = static_cast<int>(value);
       }},
      {"sluice.in_process_work", 0, std::numeric_limits<int64_t>::max(),
       "rows x columns x epochs below which a training starts no process",
       [](int64_t value, planner::Options& options) { options.in_process_work = value; }},
  };
  return settings;
}

Session::Session(catalog::DataSource& source, catalog::Catalog& catalog, std::string user,
                 executor::LocalCluster* cluster)
    : source_(source), catalog_(catalog), user_(std::move(user)), cluster_(cluster) {
  planner_options_.memory_bytes = cluster != nullptr ? cluster->memory_bytes() : MachineMemory();
  const unsigned cpus = std::thread::hardware_concurrency();  // 0 when unknown
  if (cpus > 0) {
    planner_options_.local_cpus = static_cast<int>(cpus);
  }
}

Status Session::Set(const parser::Name& name, const parser::AttributeValue& value) {
  std::vector<std::string> names;
  for (const SettingSpec& setting : Settings()) {
    names.push_back(setting.name);
    if (!EqualIgnoringCase(name.text, setting.name)) {
      continue;
    }
    const auto* number = std::get_if<int64_t>(&value.value);
    if (number == nullptr || *number < setting.min || *number > setting.max) {
      return InvalidArgument(fmt::format("{} must be an integer from {} to {}, not {}",
                                         setting.name, setting.min, setting.max,
                                         parser::Print(value)))
          .At(value.span)
          .Detail(setting.doc);
    }
    setting.apply(*number, planner_options_);
    return OkStatus();
  }
  Status unknown = NotFound(fmt::format("no setting '{}'", name.text)).At(name.span);
  if (const auto nearest = NearestName(name.text, names)) {
    return std::move(unknown).Hint(fmt::format("did you mean '{}'?", *nearest));
  }
  std::string known;
  for (const std::string& setting : names) {
    known += (known.empty() ? "" : ", ") + setting;
  }
  return std::move(unknown).Hint("the settings are " + known);
}

}  // namespace sluice::server
