#include "server/config/config.h"

#include <fmt/core.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/letter_case.h"
#include "catalog/source_url.h"

namespace sluice::server {
namespace {

constexpr int64_t kMaxStatements = 1'000;  // each holds a thread and a database connection
constexpr int64_t kMaxSlots = 1'024;       // larger numbers are taken for typing errors
constexpr int64_t kMaxTimeoutSeconds = 24 * 60 * 60;
constexpr int64_t kMaxMebibytes = int64_t{1} << 30;

struct Key {
  const char* name;
  std::string Config::*text = nullptr;
  int64_t Config::*number = nullptr;  // null where the value is a text
  int64_t least = 0, most = 0;
};
constexpr Key kKeys[] = {
    {"source", &Config::source},
    {"grpc", &Config::grpc},
    {"pg", &Config::pg},
    {"metrics", &Config::metrics},
    {"audit", &Config::audit},
    {"verifiers", &Config::verifiers},
    {"password_file", &Config::password_file},
    {"tls_folder", &Config::tls_folder},
    {"tls_cert", &Config::tls_cert},
    {"tls_key", &Config::tls_key},
    {"auth", &Config::auth},
    {"max_statements", nullptr, &Config::max_statements, 1, kMaxStatements},
    {"write_timeout", nullptr, &Config::write_timeout, 1, kMaxTimeoutSeconds},
    {"keep_jobs", &Config::keep_jobs},
    {"databases", &Config::databases},
    {"role_limits", &Config::role_limits},
    {"slots", nullptr, &Config::slots, 0, kMaxSlots},
    {"memory_limit", nullptr, &Config::memory_limit, 0, kMaxMebibytes},
    {"cluster", &Config::cluster},
    {"pods_image", &Config::pods_image},
    {"pods_namespace", &Config::pods_namespace},
    {"pods_template", &Config::pods_template},
    {"pods_priority_class", &Config::pods_priority_class},
    {"pods_allow", &Config::pods_allow},
    {"checkpoint_root", &Config::checkpoint_root},
    {"export_root", &Config::export_root},
    {"python", &Config::python},
    {"python_models", nullptr, &Config::python_models, 0, 1},
    {"log_level", &Config::log_level},
    {"log_format", &Config::log_format},
    {"user", &Config::user},
    {"history_file", &Config::history_file},
};

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) {
    return {};
  }
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// Replaces `source`: every user of the machine can list a process's command line.
constexpr std::string_view kSourceFile = "source_file";

Status ReadSourceFile(const std::string& path, Config& config) {
  ASSIGN_OR_RETURN(const std::string url, ReadSourceUrl(path));
  config.source = catalog::WithPasswordFile(url, std::filesystem::absolute(path).string());
  return OkStatus();
}

Status SetKey(Config& config, std::string_view name, const std::string& value,
              std::string_view where) {
  std::vector<std::string> names = {std::string(kSourceFile)};
  if (name == kSourceFile) {
    return ReadSourceFile(value, config);
  }
  for (const Key& key : kKeys) {
    names.emplace_back(key.name);
    if (name != key.name) {
      continue;
    }
    if (key.text != nullptr) {
      config.*key.text = value;
      return OkStatus();
    }
    int64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size() || number < key.least ||
        number > key.most) {
      return InvalidArgument(fmt::format("{}: {} must be an integer from {} to {}, not '{}'", where,
                                         name, key.least, key.most, value));
    }
    config.*key.number = number;
    return OkStatus();
  }
  Status unknown = InvalidArgument(fmt::format("{}: no setting '{}'", where, name));
  if (const auto nearest = NearestName(name, names)) {
    return std::move(unknown).Hint(fmt::format("did you mean '{}'?", *nearest));
  }
  return unknown;
}

Status ReadFile(const std::string& path, Config& config) {
  std::ifstream file(path);
  if (!file) {
    return NotFound(fmt::format("cannot read the configuration file {}", path));
  }
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const std::string_view text = Trim(line);
    if (text.empty() || text.front() == '#') {
      continue;
    }
    const std::string where = fmt::format("{}:{}", path, number);
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) {
      return InvalidArgument(fmt::format("{}: expected 'key = value'", where));
    }
    RETURN_IF_ERROR(SetKey(config, Trim(text.substr(0, equals)),
                           std::string(Trim(text.substr(equals + 1))), where));
  }
  return OkStatus();
}

// Used when the user has named no pager: less, or else more, where installed.
constexpr std::string_view kUsualPager =
    "for pager in less more cat; do command -v $pager >/dev/null && exec $pager; done";

const char* Environment(const std::string& name) {
  return std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): before any thread
}

// $PGUSER, as in psql; else $USER; where that is not set (containers), the name of the process's
// user.
std::string LoginName() {
  for (const char* name : {"PGUSER", "USER"}) {
    if (const char* user = Environment(name)) {
      return user;
    }
  }
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  getpwuid_r(geteuid(), &entry, buffer.data(), buffer.size(), &found);
  return found == nullptr ? "" : found->pw_name;
}

Status ReadKeepJobs(Config& config) {
  constexpr int64_t kHoursOfDay = 24;
  constexpr int64_t kMostDays = 36'500;
  const std::string& text = config.keep_jobs;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, text.data() + text.size());
  if (error != std::errc() || number < 0 || number > kMostDays * kHoursOfDay ||
      (unit != "d" && unit != "h" && text != "0")) {
    return InvalidArgument(fmt::format(
        "keep_jobs must be days or hours, as 90d or 12h, or 0 for always, not '{}'", text));
  }
  config.keep_jobs_hours = unit == "d" ? number * kHoursOfDay : number;
  return OkStatus();
}

Status Check(const Config& config) {
  static const std::vector<std::string> levels = {"debug", "info", "warn", "error", "off"};
  if (std::find(levels.begin(), levels.end(), config.log_level) == levels.end()) {
    return InvalidArgument(fmt::format(
        "log_level must be debug, info, warn, error or off, not '{}'", config.log_level));
  }
  if (config.log_format != "text" && config.log_format != "json") {
    return InvalidArgument(
        fmt::format("log_format must be text or json, not '{}'", config.log_format));
  }
  static const std::vector<std::string> logins = {"", "password", "scram", "trust"};
  if (std::find(logins.begin(), logins.end(), config.auth) == logins.end()) {
    return InvalidArgument(
        fmt::format("auth must be password, scram or trust, not '{}'", config.auth));
  }
  if (!config.cluster.empty() && config.cluster != "local" && config.cluster != "kubernetes") {
    return InvalidArgument(
        fmt::format("cluster must be local or kubernetes, not '{}'", config.cluster));
  }
  if (config.tls_cert.empty() != config.tls_key.empty()) {
    return InvalidArgument("tls_cert and tls_key belong together: give both or none");
  }
  return OkStatus();
}

// "" without a HOME.
std::string UsualPasswordFile() {
  const char* const home = Environment("HOME");
  return home == nullptr ? "" : std::string(home) + "/.sluice/passwords";
}

}  // namespace

Result<std::string> ReadSourceUrl(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!file || !std::getline(file, line) || Trim(line).empty()) {
    return NotFound(fmt::format("cannot read a data source from {}", path))
        .Hint("its first line must be sqlite:PATH or postgresql://user:password@host/database");
  }
  return std::string(Trim(line));
}

Result<Config> LoadConfig(const std::string& file, const ConfigValues& flags) {
  Config config;
  config.user = LoginName();
  if (const char* home = Environment("HOME")) {
    config.history_file = std::string(home) + "/.sluice_history";
    config.tls_folder = std::string(home) + "/.sluice";
    config.password_file = UsualPasswordFile();
  }
  const char* pager = Environment("PAGER");
  config.pager = pager == nullptr ? kUsualPager : Trim(pager);
  const char* named_file = Environment("SLUICE_CONFIG");
  const std::string path = file.empty() && named_file != nullptr ? named_file : file;
  if (!path.empty()) {
    RETURN_IF_ERROR(ReadFile(path, config));
  }
  for (const Key& key : kKeys) {
    const std::string variable = "SLUICE_" + UpperAscii(key.name);
    if (const char* value = Environment(variable)) {
      RETURN_IF_ERROR(SetKey(config, key.name, value, "environment variable " + variable));
    }
  }
  if (const char* source_file = Environment("SLUICE_SOURCE_FILE")) {
    RETURN_IF_ERROR(ReadSourceFile(source_file, config));
  }
  // A job's processes inherit the environment; they get the source in another way.
  unsetenv("SLUICE_SOURCE");  // NOLINT(concurrency-mt-unsafe): before any thread
  for (const auto& [key, value] : flags) {
    RETURN_IF_ERROR(SetKey(config, key, value, "command line"));
  }
  RETURN_IF_ERROR(Check(config));
  RETURN_IF_ERROR(ReadKeepJobs(config));
  ASSIGN_OR_RETURN(config.limits, ReadRoleLimits(config.role_limits));
  return config;
}

Result<Auth> AuthOf(const Config& config) {
  const bool has_users = config.source.rfind("sqlite:", 0) != 0;
  if (config.auth == "trust") {
    return Auth::kTrust;
  }
  if (config.auth == "scram") {
    return Auth::kScram;
  }
  if (config.auth == "password" || has_users) {
    return Auth::kPassword;
  }
  std::error_code error;
  if (!config.password_file.empty() && std::filesystem::exists(config.password_file, error)) {
    return Auth::kScram;
  }
  if (error) {  // there may be users
    return Status(Code::kPermissionDenied, fmt::format("cannot look for the password file {}: {}",
                                                       config.password_file, error.message()))
        .SqlState("28000")
        .Hint("let the gateway's user read the folder, or say --auth trust");
  }
  if (!config.password_file.empty() && config.password_file != UsualPasswordFile()) {
    return NotFound(fmt::format("there is no password file {}", config.password_file))
        .SqlState("58P01")
        .Hint(
            fmt::format("sluice password NAME --password-file {} makes it", config.password_file));
  }
  const bool open_door = !config.pg.empty() && !IsLocalAddress(config.pg);
  if (open_door || !IsLocalAddress(config.grpc)) {
    return Status(Code::kPermissionDenied,
                  fmt::format(
                      "anyone who reaches {} could use the database: SQLite has no users of its "
                      "own, and there is no password file",
                      open_door ? config.pg : config.grpc))
        .SqlState("28000")
        .Hint(
            "make users with 'sluice password NAME', listen on 127.0.0.1, or say --auth trust "
            "where that is what is wanted");
  }
  return Auth::kTrust;
}

Status CheckStillTrusted(const Config& config) {
  const Result<Auth> now = AuthOf(config);
  if (!now.ok() || *now == Auth::kTrust) {
    return now.status();
  }
  return Status(Code::kPermissionDenied,
                fmt::format("users were made after this gateway had begun without any ({})",
                            config.password_file))
      .SqlState("28000")
      .Hint("start the gateway again: it then asks for their passwords");
}

bool IsLocalAddress(std::string_view address) {
  const size_t comma = address.find(',');
  if (comma != std::string_view::npos) {
    return IsLocalAddress(address.substr(0, comma)) && IsLocalAddress(address.substr(comma + 1));
  }
  if (address.starts_with("unix:") || address.starts_with("unix-abstract:") ||
      address.starts_with("/")) {
    return true;
  }
  const std::string_view host = address.substr(0, address.rfind(':'));
  const bool number = host.find_first_not_of("0123456789.") == std::string_view::npos;
  return host == "localhost" || host == "[::1]" || (number && host.substr(0, 4) == "127.");
}

executor::KubernetesPlace KubernetesOfEnvironment() {
  const auto text = [](const char* name) {
    const char* const value = Environment(name);
    return std::string(value == nullptr ? "" : value);
  };
  return {text("KUBECONFIG"), text("KUBERNETES_SERVICE_HOST"), text("KUBERNETES_SERVICE_PORT")};
}

executor::LocalCluster::Options ClusterOptions(const Config& config) {
  executor::LocalCluster::Options options;
  options.slots.slots = static_cast<double>(config.slots);
  options.slots.memory_bytes = config.memory_limit << 20;
  return options;
}

std::string PrintConfig(const Config& config) {
  std::string text;
  for (const Key& key : kKeys) {
    const std::string value = key.text != nullptr ? catalog::WithoutSecrets(config.*key.text)
                                                  : fmt::format("{}", config.*key.number);
    text += fmt::format("{} = {}\n", key.name, value);
  }
  return text;
}

void UsePassiveWaiting() {
  if (Environment("GOMP_SPINCOUNT") == nullptr) {
    setenv("OMP_WAIT_POLICY", "passive", 0);  // NOLINT(concurrency-mt-unsafe): before any thread
  }
}

}  // namespace sluice::server
