#include "elastic/master/all_reduce_rounds.h"

#include <gtest/gtest.h>

#include "tests/elastic/queue/queue_steps.h"

namespace sluice::elastic {
namespace {

Task Lane(int64_t id) {
  Task lane;
  lane.id = TaskId(id);
  lane.epoch = Epoch(1);
  lane.round = RoundIndex(3);
  return lane;
}

// Two workers, 1 and 2, and rounds of four lanes.
class AllReduceRoundsTest : public ::testing::Test {
 protected:
  static Rendezvous::Options Options() {
    Rendezvous::Options options;
    options.expected_members = 2;
    return options;
  }
  static RoundPosition Position(int64_t step) {
    return {Epoch(1), RoundIndex(3), BatchIndex(step), std::vector<TaskReport>(4)};
  }
  void Arrive(Incarnation worker, int64_t closed) {
    Rendezvous::Arrival arrival;
    arrival.incarnation = worker;
    arrival.closed = closed;
    arrival.beginning = rounds_.world().beginning;
    arrival.generation = rounds_.world().generation;
    arrival.world = rounds_.world().id;
    rounds_.Arrive(arrival, Position(closed), At(1));
  }
  void Form() {
    Arrive(Incarnation(1), Rendezvous::kNoState);
    EXPECT_FALSE(rounds_.Regroup(At(1)).has_value()) << "another one is expected";
    Arrive(Incarnation(2), Rendezvous::kNoState);
    ASSERT_TRUE(rounds_.Regroup(At(1)).has_value());
    for (int64_t lane = 1; lane <= 4; ++lane) {
      rounds_.Deal(Lane(lane));
    }
  }

  AllReduceRounds rounds_{Options()};
};

TEST_F(AllReduceRoundsTest, BeginWhenEverybodyIsThere) {
  Arrive(Incarnation(1), Rendezvous::kNoState);
  EXPECT_FALSE(rounds_.Regroup(At(1)).has_value());
  Arrive(Incarnation(2), Rendezvous::kNoState);
  const auto regrouped = rounds_.Regroup(At(1));
  ASSERT_TRUE(regrouped.has_value());
  EXPECT_TRUE(regrouped->new_world);
  EXPECT_FALSE(regrouped->begins_again);
  EXPECT_FALSE(rounds_.CloseNewest().has_value()) << "nobody has parameters yet";
}

TEST_F(AllReduceRoundsTest, GoOnFromWhereTheNewestMemberIs) {
  Form();
  Arrive(Incarnation(1), 6);
  EXPECT_FALSE(rounds_.Regroup(At(1)).has_value());
  Arrive(Incarnation(2), 7);
  const auto regrouped = rounds_.Regroup(At(1));
  ASSERT_TRUE(regrouped.has_value());
  EXPECT_FALSE(regrouped->new_world) << "of the same members";
  EXPECT_EQ(rounds_.CloseNewest()->step, BatchIndex(7));
  // A worker that has closed fewer steps than the others cannot be a successor.
  rounds_.Remove(Incarnation(1));
  rounds_.Remove(Incarnation(2));
  Arrive(Incarnation(3), 6);
  EXPECT_TRUE(rounds_.Regroup(At(1))->begins_again);
}

TEST_F(AllReduceRoundsTest, BeginAgainWhenNobodyHasTheParameters) {
  Form();
  rounds_.Closed(5);
  rounds_.Remove(Incarnation(1));
  rounds_.Remove(Incarnation(2));
  Arrive(Incarnation(3), Rendezvous::kNoState);
  const auto regrouped = rounds_.Regroup(At(1));
  ASSERT_TRUE(regrouped.has_value());
  EXPECT_TRUE(regrouped->begins_again);
  EXPECT_TRUE(regrouped->new_world);
}

TEST_F(AllReduceRoundsTest, MembersShareTheLanesByTheirRank) {
  Form();
  const std::vector<Task> first = rounds_.LanesOfMember(Incarnation(1));
  const std::vector<Task> second = rounds_.LanesOfMember(Incarnation(2));
  ASSERT_EQ(first.size(), 2U);
  ASSERT_EQ(second.size(), 2U);
  EXPECT_EQ(first[0].id, TaskId(1));
  EXPECT_EQ(second[0].id, TaskId(3));
  EXPECT_TRUE(rounds_.LanesOfMember(Incarnation(3)).empty()) << "no member";
}

TEST_F(AllReduceRoundsTest, KnowWhatIsSaidOfTheOpenRound) {
  Form();
  EXPECT_TRUE(rounds_.IsOf(Position(0)));
  RoundPosition other = Position(0);
  other.round = RoundIndex(2);
  EXPECT_FALSE(rounds_.IsOf(other));
  other = Position(0);
  other.epoch = Epoch(2);
  EXPECT_FALSE(rounds_.IsOf(other));
  other = Position(0);
  other.lanes.pop_back();
  EXPECT_FALSE(rounds_.IsOf(other));
  rounds_.EndRound();
  EXPECT_FALSE(rounds_.IsOf(Position(0))) << "none is open";
  EXPECT_FALSE(rounds_.IsOf({Epoch(1), RoundIndex(3), BatchIndex(0), {}}));
}

TEST_F(AllReduceRoundsTest, GoOnFromWhatAnotherHad) {
  Form();
  AllReduceRounds other(Options());
  other.Restore(rounds_.rendezvous().Remember(), rounds_.lanes());
  EXPECT_EQ(other.world().members, rounds_.world().members);
  EXPECT_EQ(other.LanesOfMember(Incarnation(2))[1].id, TaskId(4));
  const AllReduceRounds without(Options(), rounds_.lanes());
  EXPECT_TRUE(without.IsOf(Position(0)));
  EXPECT_TRUE(without.LanesOfMember(Incarnation(1)).empty()) << "its members are gone";
}

}  // namespace
}  // namespace sluice::elastic
