#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

#include "base/letter_case.h"
#include "planner/choose_internal.h"
#include "planner/plan.pb.h"
#include "planner/pods.h"

namespace sluice::planner {
namespace {

constexpr int64_t kRowsPerShard = 10'000;
// A process holds two shards; larger ones would cost memory without saving time.
constexpr int64_t kMaxRowsPerShard = 30'000;
// A table that is shared out is cut into this many shards, so that a slow worker's shards are
// short; each has at least this many batches per step, since a query costs something.
constexpr int64_t kMaxSharedShards = 64;
constexpr int64_t kMinBatchesPerShard = 4;
// Micro-batches of a synchronous step: enough for eight workers, and few enough for a loader to
// hold at once.
constexpr uint32_t kMicroBatches = 8;
// Up to this many rows, whatever the planner has estimated, the databases count the rows of the
// shards (catalog::kExactCutRows); above it, a shard's rows depend on how the table is cut.
constexpr int64_t kCountedCutRows = 100'000;
// A training of trees takes about as long as this many epochs of a small network.
constexpr double kEpochsOfTrees = 130;
// Parameters that one server can exchange without being the bottleneck.
constexpr int64_t kParametersPerServer = 16'000'000;
// A worker and a server exchange the server's dense parameters in one message, which elastic/
// (kMaxMessageBytes) limits to 512 MiB; the rest is for rows of tables and for uneven partitions.
constexpr int64_t kDenseBytesPerServer = int64_t{448} << 20;

// The fleet's limits as given, checked against each other.
Status ReadWorkers(const AttributeSet& attributes, const Options& options,
                   plan::Strategy* strategy) {
  const std::optional<int64_t> asked = attributes.Integer("engine.num_workers");
  const std::optional<int64_t> least = attributes.Integer("engine.min_workers");
  const std::optional<int64_t> most = attributes.Integer("engine.max_workers");
  const int64_t max =
      most.value_or(std::max({asked.value_or(0), least.value_or(0),
                              asked ? 1 : static_cast<int64_t>(options.local_cpus)}));
  const int64_t min = least.value_or(1);
  if (max < min) {
    return Conflict(
        attributes, "engine.max_workers",
        fmt::format("engine.max_workers is {}, less than engine.min_workers, {}", max, min));
  }
  if (asked && (*asked < min || *asked > max)) {
    return Conflict(attributes, "engine.num_workers",
                    fmt::format("engine.num_workers must lie between engine.min_workers, {}, and "
                                "engine.max_workers, {}; it is {}",
                                min, max, *asked));
  }
  const int64_t start =
      asked.value_or(std::clamp(std::min<int64_t>(max, options.local_cpus), min, max));
  strategy->set_min_workers(Unsigned(min));
  strategy->set_max_workers(Unsigned(max));
  strategy->set_workers(Unsigned(start));
  return OkStatus();
}

void OneWorker(plan::Strategy* strategy) {
  strategy->set_kind(plan::Strategy::LOCAL);
  strategy->set_min_workers(1);
  strategy->set_max_workers(1);
  strategy->set_workers(1);
  strategy->set_micro_batches(1);
}

// A step's micro-batches affect the model, so they must not depend on the workers.
Status MakeSynchronous(const AttributeSet& attributes, uint32_t batch_size,
                       plan::Strategy* strategy, std::vector<std::string>* notes) {
  constexpr char kName[] = "engine.micro_batches";
  uint32_t lanes = 1;
  while (lanes < kMicroBatches && lanes * 2 <= batch_size) {
    lanes *= 2;
  }
  if (const std::optional<int64_t> asked = attributes.Integer(kName)) {
    lanes = Unsigned(*asked);
    if (!std::has_single_bit(lanes)) {
      return Conflict(attributes, kName,
                      fmt::format("{} must be a power of two, not {}", kName, lanes))
          .Hint(fmt::format("write {} or {}", std::bit_floor(lanes), std::bit_ceil(lanes)));
    }
    if (lanes > batch_size) {
      return Conflict(attributes, kName,
                      fmt::format("{} is {}, and a batch has {} rows", kName, lanes, batch_size))
          .Hint("fewer micro-batches, or a larger train.batch_size");
    }
  }
  strategy->set_mode(plan::Strategy::SYNCHRONOUS);
  strategy->set_micro_batches(lanes);
  const uint32_t workers =
      std::max(strategy->workers(), attributes.Given("engine.max_workers") ? strategy->max_workers()
                                                                           : strategy->workers());
  if (workers > lanes) {
    notes->push_back(fmt::format(
        "{} workers share {} micro-batches a step, so {} of them stand by; {}={} would give each "
        "one (and another model)",
        workers, lanes, workers - lanes, kName, std::bit_ceil(workers)));
  }
  return OkStatus();
}

// All-reduce has synchronous steps and no servers.
Status CheckAllReduce(const AttributeSet& attributes) {
  for (const char* name :
       {"engine.num_ps", "engine.max_ps", "engine.replicas", "engine.staleness"}) {
    if (attributes.Integer(name).value_or(0) > 0) {
      return Conflict(attributes, name,
                      fmt::format("engine.strategy='allreduce' and {} exclude each other", name))
          .Hint("engine.strategy='parameter_server' has servers and asynchronous workers");
    }
  }
  if (attributes.Given("engine.sync") && !attributes.Flag("engine.sync").value_or(true)) {
    return Conflict(attributes, "engine.sync",
                    "engine.strategy='allreduce' and engine.sync=false exclude each other")
        .Hint("an all-reduce closes each step over all workers");
  }
  if (attributes.Text("engine.on_poison").value_or("fail") == "skip") {
    return Conflict(attributes, "engine.on_poison",
                    "engine.strategy='allreduce' and engine.on_poison='skip' exclude each other")
        .Hint("a synchronous step closes over all of its lanes");
  }
  if (attributes.Text("engine.transport").value_or("float32") == "bf16") {
    return Conflict(attributes, "engine.transport",
                    "engine.strategy='allreduce' and engine.transport='bf16' exclude each other")
        .Hint(
            "workers add gradients up as they are, so that the model does not depend on their "
            "number");
  }
  return OkStatus();
}

Status ReadMode(const AttributeSet& attributes, uint32_t batch_size, plan::Strategy* strategy,
                std::vector<std::string>* notes) {
  const bool synchronous = attributes.Flag("engine.sync").value_or(false);
  const std::optional<int64_t> staleness = attributes.Integer("engine.staleness");
  if (synchronous && staleness.value_or(0) > 0) {
    return Conflict(attributes, "engine.staleness",
                    "engine.staleness and engine.sync exclude each other")
        .Hint("a synchronous step waits for all workers: its staleness is 0");
  }
  const bool skips = attributes.Text("engine.on_poison").value_or("fail") == "skip";
  if (synchronous && skips) {
    return Conflict(attributes, "engine.on_poison",
                    "engine.on_poison='skip' and engine.sync exclude each other")
        .Hint("a synchronous step closes over all of its lanes");
  }
  strategy->set_skip_poison(skips);
  strategy->set_micro_batches(1);
  if (synchronous) {
    RETURN_IF_ERROR(MakeSynchronous(attributes, batch_size, strategy, notes));
  } else if (staleness) {
    strategy->set_mode(plan::Strategy::BOUNDED_STALENESS);
    strategy->set_staleness(Unsigned(*staleness));
  }
  if (attributes.Text("engine.transport").value_or("float32") == "bf16") {
    strategy->set_transport(plan::Strategy::BFLOAT16);
  }
  return OkStatus();
}

// Two where one's loss would be the loss of its parameters, as any pod may go at any time.
int64_t UsualServers(const AttributeSet& attributes, const Work& work, const Options& options) {
  const bool copies = options.pods && attributes.Integer("engine.replicas").value_or(1) > 0;
  const int64_t usual = copies || work.parameters > kParametersPerServer ? 2 : 1;
  return std::min(usual, attributes.Integer("engine.max_ps").value_or(usual));
}

// As few parameter servers as possible, such that each one's exchange fits into a message.
Status ChooseServers(const AttributeSet& attributes, const Work& work, const Options& options,
                     plan::Strategy* strategy, std::vector<std::string>* notes) {
  const bool bf16 = attributes.Text("engine.transport").value_or("float32") == "bf16";
  const int64_t bytes =
      work.dense_parameters * static_cast<int64_t>(bf16 ? sizeof(uint16_t) : sizeof(float));
  const int64_t fewest =
      std::max((bytes + kDenseBytesPerServer - 1) / kDenseBytesPerServer, int64_t{1});
  const int64_t usual = std::max(UsualServers(attributes, work, options), fewest);
  const int64_t servers = std::max<int64_t>(attributes.Integer("engine.num_ps").value_or(usual), 1);
  if (servers < fewest) {
    return ResourceExhausted(fmt::format("the model's dense parameters have {} MB, of which a "
                                         "worker exchanges {} MB with each of {} parameter servers "
                                         "at once; {} MB are allowed",
                                         bytes >> 20, (bytes / servers) >> 20, servers,
                                         kDenseBytesPerServer >> 20))
        .SqlState("54000")
        .At(attributes.SpanOf("engine.num_ps"))
        .Hint(fmt::format("engine.num_ps={}, or smaller layers", fewest));
  }
  strategy->set_parameter_servers(Unsigned(servers));
  if (attributes.Integer("engine.num_ps") == 0) {
    notes->push_back(
        "engine.num_ps=0: workers exchange by one parameter server all the same; "
        "engine.strategy='allreduce' trains without any");
  }
  if (const std::optional<int64_t> most = attributes.Integer("engine.max_ps")) {
    if (*most < servers) {
      return Conflict(attributes, "engine.max_ps",
                      fmt::format("engine.max_ps is {}, and the job starts with {} parameter "
                                  "server{}",
                                  *most, servers, servers == 1 ? "" : "s"));
    }
    strategy->set_max_parameter_servers(Unsigned(*most));
  }
  return OkStatus();
}

}  // namespace

bool RequestsFleet(const AttributeSet& attributes) {
  const std::string strategy = attributes.Text("engine.strategy").value_or("auto");
  return strategy == "parameter_server" || strategy == "allreduce" ||
         attributes.Given("engine.num_ps") || attributes.Given("engine.max_ps") ||
         attributes.Given("engine.min_workers") || attributes.Given("engine.max_workers") ||
         attributes.Integer("engine.num_workers").value_or(1) > 1;
}

void MakePasses(plan::Strategy* strategy) {
  strategy->set_kind(plan::Strategy::PARAMETER_SERVER);
  strategy->set_mode(plan::Strategy::ASYNCHRONOUS);
  strategy->set_micro_batches(1);
  strategy->clear_parameter_servers();
  strategy->clear_max_parameter_servers();
  strategy->clear_replicas();
  strategy->clear_staleness();
  strategy->clear_transport();
}

Status ChooseStrategy(const AttributeSet& attributes, const Work& work, const Options& options,
                      plan::Strategy* strategy, std::vector<std::string>* notes) {
  const std::string asked = attributes.Text("engine.strategy").value_or("auto");
  strategy->set_priority(static_cast<int32_t>(attributes.Integer("engine.priority").value_or(0)));
  strategy->set_cpu(attributes.Number("engine.cpu").value_or(1));
  if (const auto memory = attributes.Text("engine.memory")) {
    ASSIGN_OR_RETURN(const int64_t bytes, ReadBytes(*memory, attributes.SpanOf("engine.memory")));
    strategy->set_memory_bytes(bytes);
  }
  Status errors = ReadWorkers(attributes, options, strategy);
  errors.Add(FillPods(attributes, options, strategy));
  RETURN_IF_ERROR(errors);
  if (work.trees && !work.grows) {
    if (RequestsFleet(attributes)) {
      notes->push_back("such trees are trained by one worker, whatever engine.* asks for");
    }
    OneWorker(strategy);
    strategy->set_reason("such trees train in one process");
    return OkStatus();
  }
  const double cost = static_cast<double>(work.rows) * static_cast<double>(work.columns) *
                      (work.trees ? kEpochsOfTrees : static_cast<double>(work.epochs));
  const bool large = cost > static_cast<double>(options.in_process_work);
  if (asked == "local" || (!RequestsFleet(attributes) && !large)) {
    for (const auto& [name, most] : {std::pair{"engine.num_workers", 1},
                                     {"engine.min_workers", 1},
                                     {"engine.max_workers", 1},
                                     {"engine.num_ps", 0},
                                     {"engine.max_ps", 0}}) {
      if (asked == "local" && attributes.Integer(name).value_or(most) > most) {
        return Conflict(attributes, name,
                        "engine.strategy='local' trains in one process, with one worker");
      }
    }
    OneWorker(strategy);
    if (attributes.Flag("engine.sync").value_or(false) && !work.trees) {
      RETURN_IF_ERROR(MakeSynchronous(attributes, work.batch_size, strategy, notes));
    }
    strategy->set_reason(asked == "local" ? "engine.strategy asks for it"
                                          : "small enough for one process");
    return OkStatus();
  }
  if (work.trees) {
    MakePasses(strategy);
    strategy->set_reason(RequestsFleet(attributes) ? "engine.* asks for processes"
                                                   : "too much work for one process");
    return OkStatus();
  }
  if (asked == "allreduce") {
    RETURN_IF_ERROR(CheckAllReduce(attributes));
    strategy->set_kind(plan::Strategy::ALL_REDUCE);
    RETURN_IF_ERROR(MakeSynchronous(attributes, work.batch_size, strategy, notes));
    strategy->set_reason("engine.strategy asks for it");
    return OkStatus();
  }
  strategy->set_kind(plan::Strategy::PARAMETER_SERVER);
  RETURN_IF_ERROR(ReadMode(attributes, work.batch_size, strategy, notes));
  RETURN_IF_ERROR(ChooseServers(attributes, work, options, strategy, notes));
  const uint32_t most = std::max(strategy->parameter_servers(), strategy->max_parameter_servers());
  strategy->set_replicas(most > 1 ? Unsigned(attributes.Integer("engine.replicas").value_or(1))
                                  : 0);
  if (most == 1 && attributes.Integer("engine.replicas").value_or(0) > 0) {
    return Conflict(attributes, "engine.replicas",
                    "engine.replicas needs two parameter servers or more, and there is one")
        .Hint("write engine.num_ps=2");
  }
  strategy->set_reason(RequestsFleet(attributes) ? "engine.* asks for processes"
                                                 : "too much work for one process");
  return OkStatus();
}

int64_t ChooseRowsPerShard(int64_t rows, uint32_t batch_size, const plan::Strategy& strategy,
                           std::optional<int64_t> batches) {
  const bool synchronous = strategy.mode() == plan::Strategy::SYNCHRONOUS;
  const auto batch = static_cast<int64_t>(batch_size);
  const int64_t lanes = synchronous ? strategy.micro_batches() : kMicroBatches;
  const int64_t unit = synchronous ? (batch + lanes - 1) / lanes : batch;  // of a shard, per step
  if (batches.has_value()) {
    return *batches * unit;
  }
  const auto whole = [](int64_t wanted, int64_t part) {
    return std::max((wanted + part - 1) / part, int64_t{1}) * part;
  };
  if (rows > kCountedCutRows) {
    const int64_t wanted = std::clamp(rows / kMaxSharedShards, kRowsPerShard, kMaxRowsPerShard);
    const int64_t rounds = std::max<int64_t>(rows / (wanted * kMicroBatches), 1);
    return whole((rows + rounds * kMicroBatches - 1) / (rounds * kMicroBatches), batch);
  }
  if (strategy.kind() == plan::Strategy::LOCAL && !synchronous) {
    return std::max(kRowsPerShard / batch, int64_t{1}) * batch;
  }
  const int64_t rounds = std::clamp(rows / (lanes * unit * kMinBatchesPerShard), int64_t{1},
                                    std::max<int64_t>(kMaxSharedShards / lanes, 1));
  return whole((rows + lanes * rounds - 1) / (lanes * rounds), unit);
}

int64_t RowsOfWholeTable(int64_t rows, int64_t columns, uint32_t batch_size) {
  constexpr int64_t kMaxRows = 65'536;
  constexpr int64_t kMaxCells = 8'000'000;  // 32 MB
  const int64_t enough = rows + rows / 4;
  if (enough > kMaxRows || enough * std::max<int64_t>(columns, 1) > kMaxCells) {
    return 0;
  }
  const auto batch = static_cast<int64_t>(batch_size);
  return (enough + batch - 1) / batch * batch;
}

Result<int64_t> ReadBytes(const std::string& text, Span span) {
  double amount = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), amount);
  std::string unit = UpperAscii(std::string_view(end, text.data() + text.size()));
  unit.erase(std::remove(unit.begin(), unit.end(), ' '), unit.end());
  constexpr std::string_view kUnits = "KMGT";
  double scale = 0;
  if (unit.empty() || unit == "B") {
    scale = 1;
  } else if (const size_t power = kUnits.find(unit[0]); power != std::string_view::npos) {
    const std::string rest = unit.substr(1);
    if (rest.empty() || rest == "B" || rest == "I" || rest == "IB") {
      scale = std::pow(1024.0, static_cast<double>(power + 1));
    }
  }
  constexpr double kMax = 1e15;
  if (error != std::errc() || scale == 0 || !(amount > 0) || amount * scale > kMax) {
    return InvalidArgument(fmt::format("attribute engine.memory must be a size, not '{}'", text))
        .At(span)
        .Hint("write '512MB' or '2GB'");
  }
  return static_cast<int64_t>(amount * scale);
}

}  // namespace sluice::planner
