"""The tandem device for graphdock: two engines over one memory, each with queues of its own."""
