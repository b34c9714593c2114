#include "elastic/queue/rendezvous.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "elastic/parameters/lane_tree.h"

namespace sluice::elastic {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Workers that arrive, close steps, fail and die, on virtual time.
class RendezvousTest : public ::testing::Test {
 protected:
  RendezvousTest() : rendezvous_(std::make_unique<Rendezvous>(Rendezvous::Options())) {}
  void Use(const Rendezvous::Options& options) {
    rendezvous_ = std::make_unique<Rendezvous>(options);
  }

  void Come(Incarnation worker, int64_t closed, int64_t world, bool failed = false,
            Incarnation silent = kNoIncarnation) {
    rendezvous_->Arrive(
        {worker, fmt::format("unix:{}", worker), closed, rendezvous_->world().beginning,
         known_[worker], WorldId(world), failed, silent},
        now_);
  }
  // All workers receive the outcome of the last regroup.
  void Hear() {
    for (const Rendezvous::Member& member : rendezvous_->world().members) {
      known_[member.incarnation] = rendezvous_->world().generation;
    }
  }
  bool Regroup() {
    if (!rendezvous_->Regroup(now_)) {
      return false;
    }
    Hear();
    return true;
  }
  using Members_ = std::vector<uint64_t>;
  Members_ Members() const {
    Members_ members;
    for (const Rendezvous::Member& member : rendezvous_->world().members) {
      members.push_back(member.incarnation.value());
    }
    return members;
  }
  int64_t World() const { return rendezvous_->world().id.value(); }

  std::unique_ptr<Rendezvous> rendezvous_;
  TimePoint now_{};
  std::map<Incarnation, Generation> known_;
};

TEST_F(RendezvousTest, R1_ANewcomerJoinsWhenTheStepCloses) {
  Rendezvous::Options options;
  options.expected_members = 2;
  Use(options);
  Come(Incarnation(1), -1, 0);
  EXPECT_FALSE(Regroup());  // the first world waits for all that were started
  Come(Incarnation(2), -1, 0);
  ASSERT_TRUE(Regroup());
  EXPECT_EQ(World(), 1);
  EXPECT_EQ(Members(), (Members_{1, 2}));
  EXPECT_FALSE(rendezvous_->ShouldRegroup());
  Come(Incarnation(3), -1, 0);
  EXPECT_TRUE(rendezvous_->ShouldRegroup());
  EXPECT_FALSE(Regroup());  // no worker is stopped
  EXPECT_TRUE(rendezvous_->MayGo(Incarnation(1)));
  EXPECT_FALSE(rendezvous_->MayGo(Incarnation(3)));
  Come(Incarnation(2), 5, 1);
  EXPECT_FALSE(Regroup());  // only when all are ready
  Come(Incarnation(1), 5, 1);
  ASSERT_TRUE(Regroup());
  EXPECT_EQ(World(), 2);
  EXPECT_EQ(Members(), (Members_{1, 2, 3}));
  EXPECT_EQ(rendezvous_->RankOf(Incarnation(1)), Rank(0));
  EXPECT_EQ(rendezvous_->world().closed, 5);
  EXPECT_EQ(rendezvous_->world().source, Rank(0));
  EXPECT_EQ(rendezvous_->world().members[2].closed, Rendezvous::kNoState);
}

TEST_F(RendezvousTest, ARegroupWithoutChangeKeepsTheWorld) {
  Come(Incarnation(1), -1, 0);
  ASSERT_TRUE(Regroup());
  Come(Incarnation(1), 9, 1);
  ASSERT_TRUE(Regroup());
  EXPECT_EQ(World(), 1);
  EXPECT_EQ(rendezvous_->world().closed, 9);
}

TEST_F(RendezvousTest, R2_WhenTheOldestDiesTheNextHasTheState) {
  for (const uint64_t worker : {1U, 2U, 3U}) {
    Come(Incarnation(worker), -1, 0);
  }
  ASSERT_TRUE(Regroup());
  rendezvous_->Closed(6);
  rendezvous_->Remove(Incarnation(1));
  Come(Incarnation(3), 7, 1, true);  // had closed step 7 when the others were cut off
  EXPECT_FALSE(Regroup());
  Come(Incarnation(2), 6, 1, true);
  ASSERT_TRUE(Regroup());
  EXPECT_EQ(World(), 2);
  EXPECT_EQ(Members(), (Members_{2, 3}));
  EXPECT_EQ(rendezvous_->world().closed, 7);
  EXPECT_EQ(rendezvous_->world().source, Rank(1));
  EXPECT_EQ(rendezvous_->world().beginning, 0);
}

TEST_F(RendezvousTest, R3_WhenAllVanishANewWorldBeginsAgain) {
  Come(Incarnation(1), -1, 0);
  Come(Incarnation(2), -1, 0);
  ASSERT_TRUE(Regroup());
  rendezvous_->Closed(4);
  rendezvous_->Remove(Incarnation(1));
  Come(Incarnation(3), -1, 0);
  EXPECT_FALSE(Regroup());  // the parameters still exist in 2
  rendezvous_->Remove(Incarnation(2));
  ASSERT_TRUE(Regroup());
  EXPECT_EQ(World(), 2);
  EXPECT_EQ(Members(), (Members_{3}));
  EXPECT_EQ(rendezvous_->world().beginning, 1);
  EXPECT_EQ(rendezvous_->world().closed, Rendezvous::kNoState);
  // State from before the new beginning is worthless.
  rendezvous_->Arrive(
      {Incarnation(2), "unix:2", 4, 0, Generation(1), WorldId(1), true, kNoIncarnation}, now_);
  Come(Incarnation(3), 1, 2);
  ASSERT_TRUE(Regroup());
  EXPECT_EQ(rendezvous_->world().closed, 1);
  EXPECT_EQ(rendezvous_->world().members[0].closed, Rendezvous::kNoState);
}

TEST_F(RendezvousTest, R4_LanesOfAStepAreTheSameForAnyWorld) {
  // A global batch of 12 rows in 12 lanes: three each for four, four each for three.
  for (size_t size : {4U, 3U, 4U}) {
    uint32_t next = 0;
    for (size_t rank = 0; rank < size; ++rank) {
      const auto [begin, end] = LanesOf(12, Rank::At(rank), size);
      EXPECT_EQ(begin, next);
      EXPECT_EQ(end - begin, 12 / size);
      next = end;
    }
    EXPECT_EQ(next, 12U);
  }
}

TEST_F(RendezvousTest, R5_AWorkerThatLeavesStopsNobody) {
  for (const uint64_t worker : {1U, 2U, 3U}) {
    Come(Incarnation(worker), -1, 0);
  }
  ASSERT_TRUE(Regroup());
  Come(Incarnation(1), 3, 1);
  Come(Incarnation(2), 3, 1);
  EXPECT_FALSE(Regroup());
  rendezvous_->Remove(Incarnation(3));
  ASSERT_TRUE(Regroup());
  EXPECT_EQ(Members(), (Members_{1, 2}));
  EXPECT_EQ(World(), 2);
}

TEST_F(RendezvousTest, R6_TooFewWaitUntilOthersCome) {
  Rendezvous::Options options;
  options.min_members = 2;
  Use(options);
  Come(Incarnation(1), -1, 0);
  Come(Incarnation(2), -1, 0);
  ASSERT_TRUE(Regroup());
  rendezvous_->Remove(Incarnation(2));
  Come(Incarnation(1), 8, 1, true);
  now_ += seconds(100);
  EXPECT_FALSE(Regroup());
  EXPECT_FALSE(rendezvous_->MayGo(Incarnation(1)));
  Come(Incarnation(3), -1, 0);
  ASSERT_TRUE(Regroup());
  EXPECT_EQ(Members(), (Members_{1, 3}));
  EXPECT_EQ(rendezvous_->world().closed, 8);
  EXPECT_TRUE(rendezvous_->MayGo(Incarnation(1)));
  EXPECT_TRUE(rendezvous_->MayGo(Incarnation(3)));
}

TEST_F(RendezvousTest, R7_AHungMemberIsLeftBehindAndMayComeBack) {
  for (const uint64_t worker : {1U, 2U, 3U}) {
    Come(Incarnation(worker), -1, 0);
  }
  ASSERT_TRUE(Regroup());
  Come(Incarnation(1), 4, 1, true);
  Come(Incarnation(3), 4, 1, true);
  EXPECT_FALSE(Regroup());  // it may be computing
  now_ += milliseconds(2'900);
  EXPECT_FALSE(Regroup());
  now_ += milliseconds(101);
  ASSERT_TRUE(Regroup());
  EXPECT_EQ(Members(), (Members_{1, 3}));
  EXPECT_EQ(World(), 2);
  Come(Incarnation(2), 4, 1, true);  // it resumes
  EXPECT_FALSE(Regroup());
  EXPECT_TRUE(rendezvous_->ShouldRegroup());
  Come(Incarnation(1), 9, 2);
  Come(Incarnation(3), 9, 2);
  ASSERT_TRUE(Regroup());
  EXPECT_EQ(Members(), (Members_{1, 2, 3}));
  EXPECT_EQ(rendezvous_->world().members[1].closed, 4);  // it receives the state again
}

TEST_F(RendezvousTest, R7_ASilentMemberIsNotWaitedFor) {
  for (const uint64_t worker : {1U, 2U, 3U}) {
    Come(Incarnation(worker), -1, 0);
  }
  ASSERT_TRUE(Regroup());
  Come(Incarnation(1), 4, 1, true);
  EXPECT_FALSE(Regroup());
  Come(Incarnation(3), 4, 1, true, Incarnation(2));
  ASSERT_TRUE(Regroup());
  EXPECT_EQ(Members(), (Members_{1, 3}));
}

TEST_F(RendezvousTest, AnAnswerThatGotLostIsGivenAgain) {
  Come(Incarnation(1), -1, 0);
  Come(Incarnation(2), -1, 0);
  ASSERT_TRUE(rendezvous_->Regroup(now_));
  Come(Incarnation(1), -1, 0);  // asks again: it has not received world 1
  EXPECT_TRUE(rendezvous_->MayGo(Incarnation(1)));
  Hear();
  Come(Incarnation(1), 3, 1);
  Come(Incarnation(2), 3, 1);
  ASSERT_TRUE(rendezvous_->Regroup(now_));
  Come(Incarnation(1), 3, 1);  // the world has not changed, but the regroup is over
  EXPECT_TRUE(rendezvous_->MayGo(Incarnation(1)));
}

// Random workers arrive, fail, die and come back. Only members of the newest world may continue,
// worlds only grow, the newest parameters are never discarded while a living worker has them, and
// when no more events happen, all living workers end up in one world.
TEST_F(RendezvousTest, PropertiesHoldForRandomHistories) {
  struct Process {
    int64_t closed = -1, beginning = 0;
    WorldId world = kNoWorld;
    bool failed = false;
  };
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    std::mt19937_64 random(seed);
    Rendezvous::Options options;
    options.min_members = 1 + static_cast<uint32_t>(random() % 2);
    Use(options);
    known_.clear();
    std::map<Incarnation, Process> living;
    std::set<Incarnation> inside;
    Incarnation next(1);
    int64_t committed = -1, last_beginning = 0;
    WorldId last_world = kNoWorld;
    // Receives the regroup's decision.
    const auto enter = [&] {
      if (!Regroup()) {
        return;
      }
      const Rendezvous::World& world = rendezvous_->world();
      ASSERT_GE(world.id, last_world);
      last_world = world.id;
      bool survives = committed < 0;
      for (const auto& [name, process] : living) {
        survives = survives || (process.closed >= committed && process.beginning == last_beginning);
      }
      ASSERT_EQ(world.beginning != last_beginning, !survives) << "seed " << seed;
      if (world.beginning != last_beginning) {
        committed = -1;
      }
      last_beginning = world.beginning;
      ASSERT_GE(world.closed, committed);
      inside.clear();
      for (const Rendezvous::Member& member : world.members) {
        ASSERT_TRUE(living.contains(member.incarnation));
        inside.insert(member.incarnation);
        living[member.incarnation] = {std::max<int64_t>(world.closed, 0), world.beginning, world.id,
                                      false};
      }
    };
    const auto come = [&](Incarnation name) {
      const Process& process = living[name];
      rendezvous_->Arrive({name, "", process.closed, process.beginning, known_[name], process.world,
                           process.failed, kNoIncarnation},
                          now_);
    };
    for (int event = 0; event < 60; ++event) {
      now_ += milliseconds(random() % 1'500);
      const uint64_t what = random() % 6;
      if (what == 0 || living.empty()) {
        living[next];
        come(next++);
      } else if (what == 1) {
        auto victim = living.begin();
        std::advance(victim, static_cast<std::ptrdiff_t>(random() % living.size()));
        rendezvous_->Remove(victim->first);
        inside.erase(victim->first);
        living.erase(victim);
      } else if (what == 2) {
        // A collective fails; some have closed the step, some have not, some are silent for now.
        const bool all_gone = inside.size() < rendezvous_->world().members.size();
        for (Incarnation name : std::set<Incarnation>(inside)) {
          living[name].closed += random() % 2 == 0 ? 1 : 0;
          living[name].failed = true;
          if (random() % 4 != 0 || all_gone) {
            come(name);
            inside.erase(name);
          }
        }
      } else if (!inside.empty() && inside.size() == rendezvous_->world().members.size()) {
        for (Incarnation name : inside) {
          ++living[name].closed;
        }
        rendezvous_->Closed(living[*inside.begin()].closed);
        committed = std::max(committed, living[*inside.begin()].closed);
        if (rendezvous_->ShouldRegroup()) {
          for (Incarnation name : std::set<Incarnation>(inside)) {
            come(name);
          }
          inside.clear();
        }
      }
      enter();
      if (HasFatalFailure()) {
        return;
      }
    }
    // No more failures: all workers arrive.
    living[next++];
    living[next];
    for (const auto& [name, process] : std::map<Incarnation, Process>(living)) {
      come(name);
    }
    now_ += seconds(4);
    enter();
    EXPECT_EQ(Members().size(), living.size()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace sluice::elastic
