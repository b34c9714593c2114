#include "elastic/collective/all_reduce.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <future>
#include <map>
#include <optional>
#include <thread>

#include "elastic/queue/shard_order.h"
#include "tests/elastic/collective/mesh_members.h"

namespace sluice::elastic {
namespace {

constexpr size_t kDense = 1'000;
const std::vector<uint32_t> kDimensions = {1, 3};

// A gradient that depends only on the lane; its numbers differ so much in size that any other order
// of additions gives other bits.
FlatGradient LaneGradientOf(uint32_t lane) {
  const auto number = [lane](uint64_t place) {
    const uint64_t bits = MixSeeds(lane, place);
    const float size = std::ldexp(1.0F, static_cast<int>(bits % 20) - 10);
    return size * (static_cast<float>(bits >> 40) / static_cast<float>(1 << 23) - 1);
  };
  FlatGradient gradient;
  for (size_t i = 0; i < kDense; ++i) {
    gradient.dense.push_back(number(i));
  }
  gradient.tables.resize(kDimensions.size());
  for (size_t t = 0; t < kDimensions.size(); ++t) {
    for (int64_t id = 0; id < 40; ++id) {
      if (MixSeeds(lane, t, static_cast<uint64_t>(id)) % 3 != 0) {
        gradient.tables[t].ids.push_back(id);
        for (uint32_t k = 0; k < kDimensions[t]; ++k) {
          gradient.tables[t].values.push_back(
              number(10'000 + 100 * t + 4 * static_cast<size_t>(id) + k));
        }
      }
    }
  }
  return gradient;
}

double WeightOf(uint32_t lane) {
  return 1 + lane % 3 * 0.37;
}

// What a worker sends for a lane: the mean gradient times the weight of its rows.
FlatGradient Scaled(FlatGradient gradient, double weight) {
  for (float& value : gradient.dense) {
    value *= static_cast<float>(weight);
  }
  for (RowGradients& table : gradient.tables) {
    for (float& value : table.values) {
      value *= static_cast<float>(weight);
    }
  }
  return gradient;
}

bool Ended(uint32_t lane, uint32_t ended) {
  return (ended >> lane & 1) != 0;
}

// One member's part of a step.
Status Step(AllReduce& all_reduce, const Mesh& mesh, uint32_t lanes, uint32_t ended, int64_t step,
            StepSum* sum, const std::function<void()>& meanwhile = {}) {
  AllReduce::Sums sums;
  sums.Start(lanes);
  std::vector<LaneNote> notes;
  const auto [begin, end] = LanesOf(lanes, mesh.rank(), mesh.size());
  for (uint32_t lane = begin; lane < end; ++lane) {
    LaneNote note;
    note.lane = lane;
    std::optional<FlatGradient> gradient;
    if (!Ended(lane, ended)) {
      note.gradient = 1;
      note.weight = WeightOf(lane);
      gradient = Scaled(LaneGradientOf(lane), note.weight);
    }
    notes.push_back(note);
    sums.Add(lane, std::move(gradient), [](FlatGradient* left, const FlatGradient& right) {
      Merge(left, right, kDimensions);
    });
  }
  return all_reduce.Run(step, lanes, &sums.nodes(), notes, mesh.rank() == Rank(1), sum, meanwhile);
}

// The result of a parameter server for the same lanes.
LaneGradient OnAServer(uint32_t lanes, uint32_t ended) {
  SynchronousStep step(kDimensions);
  step.StartRound(lanes);
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    if (Ended(lane, ended)) {
      step.End(lane);
      continue;
    }
    FlatGradient flat = LaneGradientOf(lane);
    LaneGradient gradient;
    gradient.weight = WeightOf(lane);
    gradient.dense.push_back(std::move(flat.dense));
    gradient.tables = std::move(flat.tables);
    step.Add(lane, std::move(gradient));
  }
  return step.Close();
}

std::map<int64_t, std::vector<float>> ById(const RowGradients& rows, uint32_t dimension) {
  std::map<int64_t, std::vector<float>> by_id;
  for (size_t i = 0; i < rows.ids.size(); ++i) {
    const float* from = rows.values.data() + i * dimension;
    by_id[rows.ids[i]] = {from, from + dimension};
  }
  return by_id;
}

void ExpectSameBits(const FlatGradient& sum, const LaneGradient& expected) {
  ASSERT_EQ(sum.dense.size(), expected.dense[0].size());
  EXPECT_EQ(
      0, std::memcmp(sum.dense.data(), expected.dense[0].data(), sum.dense.size() * sizeof(float)));
  for (size_t t = 0; t < kDimensions.size(); ++t) {
    EXPECT_EQ(ById(sum.tables[t], kDimensions[t]), ById(expected.tables[t], kDimensions[t]));
  }
}

class AllReduceBits : public ::testing::TestWithParam<std::pair<size_t, Listener::Kind>> {};

TEST_P(AllReduceBits, AreThoseOfAParameterServer) {
  const size_t size = GetParam().first;
  const Listener::Kind kind = GetParam().second;
  const std::vector<Listener> listeners = MemberListeners(size, kind);
  std::vector<std::jthread> members;
  for (size_t rank = 0; rank < size; ++rank) {
    members.emplace_back([&, rank] {
      const auto mesh = Mesh::Open(MemberOptions(listeners, rank), listeners[rank], {});
      ASSERT_TRUE(mesh.ok()) << mesh.status().ToString();
      AllReduce all_reduce(**mesh, kDense, kDimensions);
      int64_t step = 0;
      for (uint32_t lanes : {1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U}) {
        for (uint32_t ended : {0x00U, 0x01U, 0x52U, 0x0eU}) {
          StepSum sum;
          int meanwhile = 0;
          const Status status =
              Step(all_reduce, **mesh, lanes, ended, ++step, &sum, [&meanwhile] { ++meanwhile; });
          ASSERT_TRUE(status.ok()) << status.ToString();
          EXPECT_EQ(meanwhile, 1);
          EXPECT_EQ(sum.reconvene, size > 1);
          if (lanes == 1 && ended == 1) {
            EXPECT_EQ(sum.lanes[0].gradient, 0U);  // nothing to add
            continue;
          }
          ExpectSameBits(sum.gradient, OnAServer(lanes, ended));
        }
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Members, AllReduceBits,
                         ::testing::Values(std::pair(1, Listener::Kind::kUnix),
                                           std::pair(2, Listener::Kind::kUnix),
                                           std::pair(3, Listener::Kind::kUnix),
                                           std::pair(5, Listener::Kind::kTcp),
                                           std::pair(8, Listener::Kind::kUnix)));

TEST(AllReduce, R7_APeerThatGoesEndsTheStepAtOnce) {
  const std::vector<Listener> listeners = MemberListeners(3);
  std::vector<std::jthread> members;
  for (size_t rank = 0; rank < 3; ++rank) {
    members.emplace_back([&, rank] {
      auto mesh = Mesh::Open(MemberOptions(listeners, rank), listeners[rank], {});
      ASSERT_TRUE(mesh.ok()) << mesh.status().ToString();
      AllReduce all_reduce(**mesh, kDense, kDimensions);
      StepSum sum;
      EXPECT_TRUE(Step(all_reduce, **mesh, 4, 0, 1, &sum).ok());
      if (rank == 2) {
        return;
      }
      EXPECT_EQ(Step(all_reduce, **mesh, 4, 0, 2, &sum).code(), Code::kUnavailable);
    });
  }
}

TEST(AllReduce, MembersAtDifferentStepsDoNotAdd) {
  const std::vector<Listener> listeners = MemberListeners(2);
  std::vector<std::jthread> members;
  for (size_t rank = 0; rank < 2; ++rank) {
    members.emplace_back([&, rank] {
      auto mesh = Mesh::Open(MemberOptions(listeners, rank), listeners[rank], {});
      ASSERT_TRUE(mesh.ok()) << mesh.status().ToString();
      AllReduce all_reduce(**mesh, kDense, kDimensions);
      StepSum sum;
      EXPECT_EQ(Step(all_reduce, **mesh, 4, 0, static_cast<int64_t>(rank), &sum).code(),
                Code::kUnavailable);
    });
  }
}

TEST(AllReduce, StopEndsAWait) {
  const std::vector<Listener> listeners = MemberListeners(2);
  std::stop_source stop;
  std::promise<void> open;
  std::promise<void> done;
  std::jthread other([&] {
    const auto mesh = Mesh::Open(MemberOptions(listeners, 1), listeners[1], {});
    ASSERT_TRUE(mesh.ok());
    open.get_future().wait();  // requested earlier, the stop would end the other side's Open
    stop.request_stop();
    done.get_future().wait();
  });
  const auto mesh = Mesh::Open(MemberOptions(listeners, 0), listeners[0], stop.get_token());
  ASSERT_TRUE(mesh.ok());
  open.set_value();
  AllReduce all_reduce(**mesh, kDense, kDimensions);
  StepSum sum;
  EXPECT_EQ(Step(all_reduce, **mesh, 4, 0, 1, &sum).code(), Code::kCancelled);
  done.set_value();
}

TEST(AllReduce, R7_AHungProcessIsNoticedWithinASecond) {
  const std::vector<Listener> listeners = MemberListeners(2);
  const pid_t child = fork();
  if (child == 0) {
    const auto mesh = Mesh::Open(MemberOptions(listeners, 1), listeners[1], {});
    AllReduce all_reduce(**mesh, kDense, kDimensions);
    StepSum sum;
    const Status status = Step(all_reduce, **mesh, 2, 0, 1, &sum);
    raise(SIGSTOP);  // the connection stays open, but nothing arrives any more
    _exit(status.ok() ? 0 : 1);
  }
  const auto mesh = Mesh::Open(MemberOptions(listeners, 0), listeners[0], {});
  ASSERT_TRUE(mesh.ok()) << mesh.status().ToString();
  AllReduce all_reduce(**mesh, kDense, kDimensions);
  StepSum sum;
  ASSERT_TRUE(Step(all_reduce, **mesh, 2, 0, 1, &sum).ok());
  int state = 0;
  waitpid(child, &state, WUNTRACED);
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(Step(all_reduce, **mesh, 2, 0, 2, &sum).code(), Code::kUnavailable);
  EXPECT_LE(std::chrono::steady_clock::now() - before, std::chrono::seconds(1));
  kill(child, SIGKILL);
  waitpid(child, &state, 0);
}

// A worker that computes for long does not count as hung: its heartbeat continues.
TEST(AllReduce, ASlowMemberIsWaitedFor) {
  const std::vector<Listener> listeners = MemberListeners(2);
  std::vector<std::jthread> members;
  for (size_t rank = 0; rank < 2; ++rank) {
    members.emplace_back([&, rank] {
      auto mesh = Mesh::Open(MemberOptions(listeners, rank), listeners[rank], {});
      ASSERT_TRUE(mesh.ok()) << mesh.status().ToString();
      AllReduce all_reduce(**mesh, kDense, kDimensions);
      std::this_thread::sleep_for(std::chrono::milliseconds(rank * 1'500));
      StepSum sum;
      const Status status = Step(all_reduce, **mesh, 4, 0, 1, &sum);
      EXPECT_TRUE(status.ok()) << status.ToString();
    });
  }
}

// As between pods. Steps follow each other at once: poll does not see data that TLS has already
// read.
TEST(Mesh, AnEncryptedWorldHasTheSameBits) {
  constexpr size_t kSize = 3;
  const JobKey key = MakeJobKey(kMeshKey).value();
  const std::vector<Listener> listeners = MemberListeners(kSize, Listener::Kind::kTcp);
  std::vector<std::jthread> members;
  for (size_t rank = 0; rank < kSize; ++rank) {
    members.emplace_back([&, rank] {
      Mesh::Options options = MemberOptions(listeners, rank);
      options.key = key;
      options.open_seconds = 20;
      options.silence_seconds = 20;
      const auto mesh = Mesh::Open(options, listeners[rank], {});
      ASSERT_TRUE(mesh.ok()) << mesh.status().ToString();
      AllReduce all_reduce(**mesh, kDense, kDimensions);
      for (int64_t step = 1; step <= 20; ++step) {
        StepSum sum;
        const Status status = Step(all_reduce, **mesh, 4, 0, step, &sum);
        ASSERT_TRUE(status.ok()) << status.ToString();
        ExpectSameBits(sum.gradient, OnAServer(4, 0));
      }
    });
  }
}

// A member's message that is not one of ours: a header, notes, nodes and counts of rows.
struct Sent {
  int64_t world = 7, step = 1;
  uint32_t phase = 0x5343, lanes = 4, notes = 0, nodes = 0, reconvene = 0;
  uint32_t tables = static_cast<uint32_t>(kDimensions.size());
};
Status StepBeside(const Sent& header, const std::vector<LaneNote>& notes,
                  const std::vector<uint64_t>& counts) {
  const std::vector<Listener> listeners = MemberListeners(2);
  std::promise<void> over;
  const std::jthread other([&] {
    const auto mesh = Mesh::Open(MemberOptions(listeners, 1), listeners[1], {});
    ASSERT_TRUE(mesh.ok());
    const std::vector<uint32_t> begins(header.nodes, 2);
    const std::vector<float> dense(kDense, 1.0F);
    std::vector<Mesh::Traffic> traffic(2);
    traffic[0].out = {std::as_bytes(std::span(&header, 1)), std::as_bytes(std::span(notes)),
                      std::as_bytes(std::span(begins)), std::as_bytes(std::span(counts)),
                      std::as_bytes(std::span(dense))};
    traffic[0].next = [] { return std::span<std::byte>(); };
    static_cast<void>((*mesh)->Exchange(&traffic));
    if (counts.empty()) {  // else it has promised more than it sends: it disconnects
      over.get_future().wait();
    }
  });
  const auto mesh = Mesh::Open(MemberOptions(listeners, 0), listeners[0], {});
  EXPECT_TRUE(mesh.ok());
  AllReduce all_reduce(**mesh, kDense, kDimensions);
  AllReduce::Sums sums;
  sums.Start(4);
  std::vector<LaneNote> own(2);
  own[1].lane = 1;
  StepSum sum;
  const Status step = all_reduce.Run(1, 4, &sums.nodes(), own, false, &sum);
  over.set_value();
  return step;
}

TEST(AllReduce, APeersNumbersAreNotBelieved) {
  Sent header;
  header.nodes = 1;
  header.notes = 2;
  std::vector<LaneNote> notes(2);
  notes[0].lane = 2;
  notes[1].lane = 3;
  for (uint64_t rows : {uint64_t{1} << 60, uint64_t{1} << 31}) {
    EXPECT_EQ(StepBeside(header, notes, {rows, rows}).code(), Code::kUnavailable) << rows;
  }
}

TEST(AllReduce, TwoNotesOfALaneAreNotThoseOfTwo) {
  Sent header;
  header.notes = 2;
  std::vector<LaneNote> notes(2);
  notes[0].lane = 2;
  notes[1].lane = 2;
  EXPECT_EQ(StepBeside(header, notes, {}).code(), Code::kUnavailable);
  notes[1].lane = 4;
  EXPECT_EQ(StepBeside(header, notes, {}).code(), Code::kUnavailable);
  notes[1].lane = 3;
  EXPECT_TRUE(StepBeside(header, notes, {}).ok());
}

}  // namespace
}  // namespace sluice::elastic
