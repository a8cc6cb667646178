#pragma once
// One thread that works off what it is given, a bounded number of things, each once at a time.

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>

namespace twinkle::tuning {

class Background {
public:
    Background() = default;
    // Ends after the work that is being done; what still waits is dropped.
    ~Background();
    Background(const Background&) = delete;
    Background& operator=(const Background&) = delete;

    // Whether it will be done. False: the same is waiting, or too much is.
    bool add(const std::string& name, const std::function<std::function<void()>()>& make);
    // Blocks until nothing waits and nothing is being done.
    void wait();

private:
    struct Work {
        std::string name;
        std::function<void()> run;
    };
    void loop();

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Work> waiting_;
    std::set<std::string> names_;  // of what waits or is being done
    bool ends_ = false;
    std::thread thread_;
};

}  // namespace twinkle::tuning
