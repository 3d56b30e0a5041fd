"""Names of sessions that are watched over, and of their hooks."""

from __future__ import annotations

#: Public names that mean nothing in a formula: they work on sessions and threads.
ENDPOINTS = {
    "initialize_all_tables": "graphdock_tf1.train.supervision.scaffold:tables_initializer",
    "initializers.tables_initializer": "graphdock_tf1.train.supervision.scaffold:tables_initializer",
    "tables_initializer": "graphdock_tf1.train.supervision.scaffold:tables_initializer",
    "train.ChiefSessionCreator": "graphdock_tf1.train.supervision.session_creators:ChiefSessionCreator",
    "train.CheckpointSaverHook": "graphdock_tf1.train.hooks.checkpoint_saver:CheckpointSaverHook",
    "train.CheckpointSaverListener": "graphdock_tf1.train.hooks.checkpoint_saver:CheckpointSaverListener",
    "train.Coordinator": "graphdock_tf1.train.supervision.coordinator:Coordinator",
    "train.FeedFnHook": "graphdock_tf1.train.hooks.values:FeedFnHook",
    "train.FinalOpsHook": "graphdock_tf1.train.hooks.values:FinalOpsHook",
    "train.GlobalStepWaiterHook": "graphdock_tf1.train.hooks.stopping:GlobalStepWaiterHook",
    "train.LoggingTensorHook": "graphdock_tf1.train.hooks.values:LoggingTensorHook",
    "train.LooperThread": "graphdock_tf1.train.supervision.coordinator:LooperThread",
    "train.MonitoredSession": "graphdock_tf1.train.supervision.monitored_session:MonitoredSession",
    "train.MonitoredTrainingSession": (
        "graphdock_tf1.train.supervision.monitored_training_session:MonitoredTrainingSession"
    ),
    "train.NanLossDuringTrainingError": "graphdock_tf1.train.hooks.stopping:NanLossDuringTrainingError",
    "train.NanTensorHook": "graphdock_tf1.train.hooks.stopping:NanTensorHook",
    "train.ProfilerHook": "graphdock_tf1.train.hooks.profiler:ProfilerHook",
    "train.Scaffold": "graphdock_tf1.train.supervision.scaffold:Scaffold",
    "train.SecondOrStepTimer": "graphdock_tf1.train.hooks.timer:SecondOrStepTimer",
    "train.SessionCreator": "graphdock_tf1.train.supervision.session_creators:SessionCreator",
    "train.SessionManager": "graphdock_tf1.train.supervision.session_manager:SessionManager",
    "train.SessionRunArgs": "graphdock_tf1.train.hooks.run_hook:SessionRunArgs",
    "train.SessionRunContext": "graphdock_tf1.train.hooks.run_hook:SessionRunContext",
    "train.SessionRunHook": "graphdock_tf1.train.hooks.run_hook:SessionRunHook",
    "train.SessionRunValues": "graphdock_tf1.train.hooks.run_hook:SessionRunValues",
    "train.SingularMonitoredSession": "graphdock_tf1.train.supervision.monitored_session:SingularMonitoredSession",
    "train.StepCounterHook": "graphdock_tf1.train.hooks.summaries:StepCounterHook",
    "train.StopAtStepHook": "graphdock_tf1.train.hooks.stopping:StopAtStepHook",
    "train.SummarySaverHook": "graphdock_tf1.train.hooks.summaries:SummarySaverHook",
    "train.Supervisor": "graphdock_tf1.train.supervision.supervisor:Supervisor",
    "train.WorkerSessionCreator": "graphdock_tf1.train.supervision.session_creators:WorkerSessionCreator",
    "train.basic_train_loop": "graphdock_tf1.train.supervision.supervisor:basic_train_loop",
}
