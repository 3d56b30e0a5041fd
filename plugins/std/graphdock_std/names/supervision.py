"""Names of sessions that are watched over, and of their hooks."""

from __future__ import annotations

#: Public names that mean nothing in a formula: they work on sessions and threads.
ENDPOINTS = {
    "initialize_all_tables": "graphdock_std.train.supervision.scaffold:tables_initializer",
    "initializers.tables_initializer": "graphdock_std.train.supervision.scaffold:tables_initializer",
    "tables_initializer": "graphdock_std.train.supervision.scaffold:tables_initializer",
    "report_uninitialized_variables": "graphdock_std.uninitialized:report_uninitialized_variables",
    "train.ChiefSessionCreator": "graphdock_std.train.supervision.session_creators:ChiefSessionCreator",
    "train.CheckpointSaverHook": "graphdock_std.train.hooks.checkpoint_saver:CheckpointSaverHook",
    "train.CheckpointSaverListener": "graphdock_std.train.hooks.checkpoint_saver:CheckpointSaverListener",
    "train.Coordinator": "graphdock_std.train.supervision.coordinator:Coordinator",
    "train.FeedFnHook": "graphdock_std.train.hooks.values:FeedFnHook",
    "train.FinalOpsHook": "graphdock_std.train.hooks.values:FinalOpsHook",
    "train.GlobalStepWaiterHook": "graphdock_std.train.hooks.stopping:GlobalStepWaiterHook",
    "train.LoggingTensorHook": "graphdock_std.train.hooks.values:LoggingTensorHook",
    "train.LooperThread": "graphdock_std.train.supervision.coordinator:LooperThread",
    "train.MonitoredSession": "graphdock_std.train.supervision.monitored_session:MonitoredSession",
    "train.MonitoredTrainingSession": (
        "graphdock_std.train.supervision.monitored_training_session:MonitoredTrainingSession"
    ),
    "train.NanLossDuringTrainingError": "graphdock_std.train.hooks.stopping:NanLossDuringTrainingError",
    "train.NanTensorHook": "graphdock_std.train.hooks.stopping:NanTensorHook",
    "train.ProfilerHook": "graphdock_std.train.hooks.profiler:ProfilerHook",
    "train.Scaffold": "graphdock_std.train.supervision.scaffold:Scaffold",
    "train.SecondOrStepTimer": "graphdock_std.train.hooks.timer:SecondOrStepTimer",
    "train.SessionCreator": "graphdock_std.train.supervision.session_creators:SessionCreator",
    "train.SessionManager": "graphdock_std.train.supervision.session_manager:SessionManager",
    "train.SessionRunArgs": "graphdock_std.train.hooks.run_hook:SessionRunArgs",
    "train.SessionRunContext": "graphdock_std.train.hooks.run_hook:SessionRunContext",
    "train.SessionRunHook": "graphdock_std.train.hooks.run_hook:SessionRunHook",
    "train.SessionRunValues": "graphdock_std.train.hooks.run_hook:SessionRunValues",
    "train.SingularMonitoredSession": "graphdock_std.train.supervision.monitored_session:SingularMonitoredSession",
    "train.StepCounterHook": "graphdock_std.train.hooks.summaries:StepCounterHook",
    "train.StopAtStepHook": "graphdock_std.train.hooks.stopping:StopAtStepHook",
    "train.SummarySaverHook": "graphdock_std.train.hooks.summaries:SummarySaverHook",
    "train.Supervisor": "graphdock_std.train.supervision.supervisor:Supervisor",
    "train.WorkerSessionCreator": "graphdock_std.train.supervision.session_creators:WorkerSessionCreator",
    "train.basic_train_loop": "graphdock_std.train.supervision.supervisor:basic_train_loop",
}
