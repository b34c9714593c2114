// Dense all-reduce between processes of this machine, compared with Gloo's ring over its TCP
// transport: the same sum of 16 MiB by the same four processes, taking turns in one run. Also: the
// cost of the fixed tree over the lanes compared with plain summation.
//
//   build/release/bench/all_reduce_bench [MiB [processes]]

#include <fmt/core.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "bench/measure.h"
#include "elastic/collective/all_reduce.h"

namespace sluice::elastic {
namespace {

constexpr int kWarmUps = 3;
constexpr int kTurns = 5;
constexpr int kRunsPerTurn = 6;
// Seconds of each run by case, written by rank 0 for the process that prints them.
constexpr size_t kCases = 5;
enum Case : size_t { kGloo, kUnix, kTcp, kUneven, kPlain };

std::vector<float> Numbers(size_t count, size_t rank) {
  std::vector<float> numbers(count);
  for (size_t i = 0; i < count; ++i) {
    numbers[i] = static_cast<float>((i * 31 + rank * 17) % 1000) * 0.001F;
  }
  return numbers;
}

std::shared_ptr<gloo::Context> ConnectGloo(const std::string& folder, size_t rank, size_t size) {
  gloo::transport::tcp::attr attributes;
  attributes.hostname = "127.0.0.1";
  auto device = gloo::transport::tcp::CreateDevice(attributes);
  auto context =
      std::make_shared<gloo::rendezvous::Context>(static_cast<int>(rank), static_cast<int>(size));
  gloo::rendezvous::FileStore store(folder);
  context->connectFullMesh(store, device);
  return context;
}

struct Ours {
  std::unique_ptr<Mesh> mesh;
  std::unique_ptr<AllReduce> all_reduce;
  std::vector<float> numbers;
  StepSum sum;
  int64_t step = 0;

  // One step with `per_member` nodes of the tree on each member: sums that it cannot merge.
  void Run(uint32_t per_member) {
    const auto size = static_cast<uint32_t>(mesh->size());
    const auto rank = mesh->rank().value();
    std::vector<AllReduce::Sums::Node> nodes(per_member);
    std::vector<LaneNote> notes(per_member);
    for (uint32_t i = 0; i < per_member; ++i) {
      nodes[i].begin = notes[i].lane = rank * per_member + i;
      nodes[i].sum = FlatGradient{std::move(buffers_[i]), {}};
      notes[i].gradient = 1;
      notes[i].weight = 1;
    }
    const Status status = all_reduce->Run(++step, size * per_member, &nodes, notes, false, &sum);
    if (!status.ok()) {
      fmt::print(stderr, "{}\n", status.ToString());
      std::exit(1);
    }
    for (uint32_t i = 0; i < per_member; ++i) {
      buffers_[i] = std::move(nodes[i].sum->dense);
    }
  }
  std::vector<float> buffers_[2];
};

Ours ConnectOurs(const std::vector<Listener>& listeners, size_t rank, size_t count) {
  Mesh::Options options;
  options.rank = Rank::At(rank);
  options.open_seconds = 10;
  for (const Listener& listener : listeners) {
    options.addresses.push_back(listener.address());
  }
  Ours ours;
  ours.mesh = Mesh::Open(options, listeners[rank], {}).value();
  ours.all_reduce = std::make_unique<AllReduce>(*ours.mesh, count, std::vector<uint32_t>());
  for (std::vector<float>& buffer : ours.buffers_) {
    buffer = Numbers(count, rank);
  }
  return ours;
}

void Member(const std::string& folder, const std::vector<Listener>& local,
            const std::vector<Listener>& remote, size_t rank, size_t size, size_t count,
            double* seconds) {
  const std::shared_ptr<gloo::Context> context = ConnectGloo(folder, rank, size);
  Ours by_unix = ConnectOurs(local, rank, count);
  Ours by_tcp = ConnectOurs(remote, rank, count);
  std::vector<float> theirs = Numbers(count, rank);
  std::vector<float> result(count);
  gloo::AllreduceOptions options(context);
  options.setInput(theirs.data(), count);
  options.setOutput(result.data(), count);
  options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
  options.setReduceFunction(
      static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<float>));
  gloo::BarrierOptions together(context);
  const std::function<void()> cases[kCases] = {
      [&] { gloo::allreduce(options); }, [&] { by_unix.Run(1); }, [&] { by_tcp.Run(1); },
      [&] { by_unix.Run(2); },           [&] { by_unix.Run(1); },
  };
  size_t at = 0;
  for (int turn = 0; turn < kTurns; ++turn) {
    for (size_t which = 0; which < kCases; ++which) {
      for (int run = -kWarmUps; run < kRunsPerTurn; ++run) {
        gloo::barrier(together);
        const double took = Seconds(cases[which]);
        if (rank == 0 && run >= 0) {
          seconds[which * kTurns * kRunsPerTurn + at % (kTurns * kRunsPerTurn)] = took;
          ++at;
        }
      }
      at = static_cast<size_t>(turn) * kRunsPerTurn;
    }
    at = static_cast<size_t>(turn + 1) * kRunsPerTurn;
  }
}

// The owner's additions for one slice: along the tree, and one after another, both block by block.
std::pair<double, double> Additions(size_t count, size_t size) {
  constexpr size_t kBlock = 1024;
  std::vector<std::vector<float>> parts;
  for (size_t i = 0; i < size; ++i) {
    parts.push_back(Numbers(count / size, i));
  }
  const std::vector<std::span<float>> slices(parts.begin(), parts.end());
  std::vector<float> sum(count / size);
  std::vector<double> tree, plain;
  for (int run = 0; run < 4 * kTurns; ++run) {
    tree.push_back(Seconds([&] { AddSlices(slices, 0.25F, sum); }));
    plain.push_back(Seconds([&] {
      for (size_t begin = 0; begin < sum.size(); begin += kBlock) {
        const size_t block = std::min(kBlock, sum.size() - begin);
        for (size_t i = 1; i < size; ++i) {
          AddTo(slices[0].subspan(begin, block), slices[i].subspan(begin, block));
        }
        for (size_t i = begin; i < begin + block; ++i) {
          sum[i] = parts[0][i] * 0.25F;
        }
      }
    }));
  }
  return {Median(tree), Median(plain)};
}

int Main(size_t mebibytes, size_t size) {
  const size_t count = mebibytes * (1U << 20) / sizeof(float);
  std::string folder = (std::filesystem::temp_directory_path() / "all-reduce-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) {
    return 1;
  }
  std::vector<Listener> local, remote;
  for (size_t rank = 0; rank < size; ++rank) {
    local.push_back(Listener::Open(Listener::Kind::kUnix, "127.0.0.1").value());
    remote.push_back(Listener::Open(Listener::Kind::kTcp, "127.0.0.1").value());
  }
  const size_t runs = kTurns * kRunsPerTurn;
  auto* seconds =
      static_cast<double*>(mmap(nullptr, kCases * runs * sizeof(double), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  std::vector<pid_t> members;
  for (size_t rank = 0; rank < size; ++rank) {
    members.push_back(fork());
    if (members.back() == 0) {
      Member(folder, local, remote, rank, size, count, seconds);
      _exit(0);
    }
  }
  bool good = true;
  for (pid_t member : members) {
    int state = 0;
    waitpid(member, &state, 0);
    good = good && WIFEXITED(state) && WEXITSTATUS(state) == 0;
  }
  std::filesystem::remove_all(folder);
  if (!good) {
    return 1;
  }
  double median[kCases];
  for (size_t which = 0; which < kCases; ++which) {
    median[which] = Median({seconds + which * runs, seconds + (which + 1) * runs});
  }
  const auto [tree, plain] = Additions(count, size);
  fmt::print("all-reduce of {} MiB between {} processes, median of {} runs\n", mebibytes, size,
             runs);
  const auto line = [&](const char* name, double took) {
    fmt::print("  {:<28} {:7.2f} ms   {:.2f} x Gloo\n", name, took * 1e3, median[kGloo] / took);
  };
  line("Gloo, ring, TCP", median[kGloo]);
  line("tree, unix sockets", median[kUnix]);
  line("tree, TCP", median[kTcp]);
  line("tree, two nodes per member", median[kUneven]);
  fmt::print(
      "  additions along the tree {:.2f} ms, one after another {:.2f} ms: {:+.1f} % of a "
      "step (limit 10 %)\n",
      tree * 1e3, plain * 1e3, (tree - plain) / median[kUnix] * 100);
  return 0;
}

}  // namespace
}  // namespace sluice::elastic

int main(int argc, char** argv) {
  const size_t mebibytes = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 16;
  const size_t size = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 4;
  return sluice::elastic::Main(mebibytes, size);
}
