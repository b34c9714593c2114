#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::elastic {

// How jobs share a cluster: one table, run through the local fleet's arbiter, the simulated cluster
// and the controller over an API server. Workers request one processor, masters and servers none.
struct SharingCase {
  struct Job {
    uint32_t min = 1, max = 1;
    int priority = 0;
    uint32_t workers = 0;  // that it has in the end
  };
  std::string name;
  std::vector<int> nodes;     // processors of each; the local fleet is one node
  std::vector<int> services;  // processors of each; the local fleet has none
  std::vector<Job> jobs;      // in the order of their arrival
};

inline const std::vector<SharingCase>& SharingCases() {
  static const std::vector<SharingCase> cases = {
      {"AJobAloneGetsWhatItMayHave", {8}, {}, {{1, 5, 0, 5}}},
      {"AJobAloneGetsTheWholeNode", {8}, {}, {{1, 20, 0, 8}}},
      {"EqualJobsGetEqualShares", {9}, {}, {{1, 20, 0, 3}, {1, 20, 0, 3}, {1, 20, 0, 3}}},
      {"WhatASmallJobLeavesGoesToTheOthers", {9}, {}, {{1, 1, 0, 1}, {1, 20, 0, 4}, {1, 20, 0, 4}}},
      {"AHigherPriorityLeavesOthersTheirMinimum", {9}, {}, {{2, 20, 0, 2}, {1, 20, 5, 7}}},
      {"MinimaComeInTheOrderOfArrival", {6}, {}, {{4, 4, 0, 4}, {4, 4, 0, 0}, {2, 2, 0, 2}}},
      {"APriorityComesBeforeAnEarlierArrival", {6}, {}, {{4, 4, 0, 0}, {4, 4, 1, 4}, {2, 2, 0, 2}}},
      {"NodesAreUsedTogether", {4, 4}, {}, {{1, 20, 0, 4}, {1, 20, 0, 4}}},
      {"AServiceComesFirst", {4, 4}, {2}, {{1, 20, 0, 3}, {1, 20, 0, 3}}},
      {"AMinimumBeyondTheClusterHoldsUpNobody", {4}, {}, {{5, 8, 0, 0}, {1, 8, 0, 4}}},
      {"AHigherMinimumBeyondTheClusterHoldsUpNobody", {4}, {}, {{5, 8, 9, 0}, {3, 8, 0, 4}}},
      {"PrioritiesOrderThreeJobs", {8}, {}, {{1, 20, 0, 1}, {1, 3, 1, 3}, {1, 4, 2, 4}}},
      {"AServiceLeavesTheHigherPriorityMore", {4, 4}, {3}, {{1, 20, 0, 1}, {1, 20, 5, 4}}},
      {"ServicesLeaveEachJobItsMinimum", {4, 4}, {2, 2}, {{2, 8, 0, 2}, {2, 8, 0, 2}}},
  };
  return cases;
}

}  // namespace sluice::elastic
