#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <random>
#include <string>
#include <vector>

namespace sluice::elastic::simulation {

// Possible disturbances of messages, drawn from the seed.
struct Weather {
  double drop = 0;       // of a message
  double duplicate = 0;  // of a request
  double delay = 0.001;  // mean seconds of a message; exponential, so messages overtake each other
};

// Virtual time and randomness: events in the order of their times. One seed, one history.
class World {
 public:
  explicit World(uint64_t seed) : random_(seed) {}

  double now() const { return now_; }
  void At(double time, std::function<void()> event);
  void In(double seconds, std::function<void()> event) { At(now_ + seconds, std::move(event)); }
  // Runs the next event. False: there is none.
  bool Step();
  int64_t events() const { return next_; }

  // [0, 1)
  double Uniform() { return static_cast<double>(random_() >> 11) / 9007199254740992.0; }
  double Uniform(double from, double to) { return from + (to - from) * Uniform(); }
  bool Chance(double probability) { return Uniform() < probability; }
  int64_t Below(int64_t limit) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(limit));
  }
  double Exponential(double mean);

  // Adds a line to the history, if it is requested.
  void Tell(const std::string& line);
  std::function<void(const std::string&)> listener;

 private:
  struct Event {
    double time;
    int64_t number;
    std::function<void()> what;
    bool operator<(const Event& other) const {
      return time != other.time ? time > other.time : number > other.number;
    }
  };
  std::mt19937_64 random_;
  double now_ = 0;
  int64_t next_ = 0;
  std::priority_queue<Event> events_;
};

}  // namespace sluice::elastic::simulation
